package config

import (
	"fmt"
	"slices"
	"strings"
)

// Limits of names: https://www.mongodb.com/docs/manual/reference/limits/#naming-restrictions. Before MongoDB 4.4 a namespace had 120 bytes at most, and
// backends may be that old.
const (
	maxDatabaseName    = 63
	maxNamespace       = 255
	maxRemoteNamespace = 120
)

// reserved are MongoDB's own databases: no layout can be in them, and the catalog neither. No layout can be in the catalog's database.
var reserved = []string{"admin", "local", "config"}

// checkDatabaseName says what is wrong with a database's name, or nil.
func checkDatabaseName(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("the database's name is empty")
	case len(name) > maxDatabaseName:
		return fmt.Errorf("the database's name %q has %d bytes, and MongoDB takes fewer than 64", name, len(name))
	case strings.ContainsAny(name, "/\\. \"$*<>:|?\x00"):
		return fmt.Errorf("the database's name %q has a character that MongoDB does not take", name)
	}
	return nil
}

// checkCollectionName says what is wrong with a collection's name, or nil.
func checkCollectionName(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("the collection's name is empty")
	case strings.ContainsAny(name, "$\x00"):
		return fmt.Errorf("the collection's name %q has a character that MongoDB does not take", name)
	case strings.HasPrefix(name, "."), strings.HasSuffix(name, "."), strings.Contains(name, ".."):
		return fmt.Errorf("the collection's name %q has a dot at its start or end, or two in a row", name)
	case strings.HasPrefix(name, "system."):
		return fmt.Errorf("the collection's name %q begins with \"system.\", which is MongoDB's own", name)
	}
	return nil
}

// splitNamespace splits "database.collection" and checks both names.
func splitNamespace(ns string) (database, collection string, err error) {
	database, collection, ok := strings.Cut(ns, ".")
	if !ok {
		return "", "", fmt.Errorf("must be a namespace, as database.collection")
	}
	if err := checkDatabaseName(database); err != nil {
		return "", "", err
	}
	if err := checkCollectionName(collection); err != nil {
		return "", "", err
	}
	if slices.Contains(reserved, database) {
		return "", "", fmt.Errorf("a layout can't be in database %q, which is reserved", database)
	}
	return database, collection, nil
}

// checkField says what is wrong with a dotted path of a layout's field, or nil.
func checkField(path string) error {
	if len(path) > 255 {
		return fmt.Errorf("the field's path is longer than 255 bytes")
	}
	for part := range strings.SplitSeq(path, ".") {
		switch {
		case part == "":
			return fmt.Errorf("%q is not a field's path: a part is empty", path)
		case strings.HasPrefix(part, "$"), strings.ContainsRune(part, 0):
			return fmt.Errorf("%q is not a field's path", path)
		case strings.Trim(part, "0123456789") == "":
			return fmt.Errorf("%q goes through an array: a layout's field lies in documents only", path)
		}
	}
	return nil
}
