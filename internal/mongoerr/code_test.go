package mongoerr

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"testing"
)

// constants returns the constants of code.go in their order.
func constants(t *testing.T) (idents []string, codes []Code) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "code.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		number, err := strconv.Atoi(spec.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		idents, codes = append(idents, spec.Names[0].Name), append(codes, Code(number))
		return true
	})
	if len(codes) < 100 {
		t.Fatalf("only %d constants found", len(codes))
	}
	return idents, codes
}

// TestConstantsCarryMongoDBsNames: the numbers are sorted and unique, those that MongoDB names have its name or a shorter one,
// and below 9000 MongoDB has named every code.
func TestConstantsCarryMongoDBsNames(t *testing.T) {
	shorter := map[string]string{
		"InvalidIDField":               "InvalidIdField",
		"InvalidIndexSpecOption":       "InvalidIndexSpecificationOption",
		"OperationNotSupportedInTxn":   "OperationNotSupportedInTransaction",
		"QueryExceededMemoryNoDiskUse": "QueryExceededMemoryLimitNoDiskUseAllowed",
		"InterruptedDueToReplState":    "InterruptedDueToReplStateChange",
		"IDLMissingField":              "IDLFailedToParse",
		"ConflictingOperation":         "ConflictingOperationInProgress",
		"RateLimitExceeded":            "IngressRequestRateLimitExceeded",
	}
	idents, codes := constants(t)
	for i, ident := range idents {
		if i > 0 && codes[i] <= codes[i-1] {
			t.Errorf("%s = %d stands behind %s = %d", ident, codes[i], idents[i-1], codes[i-1])
		}
		name, named := names[codes[i]]
		if want, ok := shorter[ident]; ok {
			ident = want
		}
		switch {
		case named && name != ident:
			t.Errorf("%s = %d is MongoDB's %s", ident, codes[i], name)
		case !named && codes[i] < 9000:
			t.Errorf("%s = %d is no code of MongoDB", ident, codes[i])
		}
	}
}

func TestNamesAreUnique(t *testing.T) {
	seen := map[string]Code{}
	for code, name := range names {
		if other, ok := seen[name]; ok {
			t.Errorf("%s is %d and %d", name, code, other)
		}
		seen[name] = code
	}
}

func TestString(t *testing.T) {
	for code, want := range map[Code]string{
		BadValue: "BadValue", InvalidIDField: "InvalidIdField", DuplicateKey: "DuplicateKey", IDLUnknownField: "IDLUnknownField",
		RegexInvalid: "Location51091", 121: "DocumentValidationFailure", 0: "Location0",
	} {
		if got := code.String(); got != want {
			t.Errorf("%d is %s, want %s", int32(code), got, want)
		}
	}
}

func TestErrors(t *testing.T) {
	e := New(NamespaceNotFound, "ns %s not found", "a.b")
	wrapped := fmt.Errorf("drop it: %w", e)
	if From(wrapped) != e || !Is(wrapped, NamespaceNotFound) || Is(wrapped, BadValue) {
		t.Errorf("%v is not recognized within %v", e, wrapped)
	}
	if e.Error() != "NamespaceNotFound: ns a.b not found" {
		t.Errorf("the error reads %q", e.Error())
	}
	plain := errors.New("disk on fire")
	if got := From(plain); got.Code != InternalError || got.Message != "disk on fire" || Is(plain, InternalError) {
		t.Errorf("a plain error becomes %v", got)
	}
}
