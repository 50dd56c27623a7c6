// Package oxbow is a gateway for MongoDB collections that outgrow MongoDB's defaults, as a library.
package oxbow
