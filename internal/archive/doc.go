// Package archive keeps documents in files before they are deleted: BSON one after the other, as mongodump's files have it, compressed with zstd, a folder a
// database and files of a bounded size a collection, with a list of their checksums and one of what they hold.
//
// It knows no deployments and restores nothing: zstd and mongorestore do (docs/purge.md).
//
// Invariants: when Append returns nil the documents are on disk, synced, in a whole zstd frame; after an error what is in the file still ends with one;
// a file that is in the lists does not change any more; a folder is open once at a time.
//
// cmd and the root package open it, for maintain/purge.
package archive
