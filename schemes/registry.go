package schemes

import (
	"fmt"
	"sort"
	"strings"
)

// Entry is a scheme with what the suite has to know about it.
type Entry struct {
	Scheme     Scheme
	Summary    string // one line
	Stores     Stores
	Guarantees Guarantees
}

var registry []Entry

func register(e Entry) { registry = append(registry, e) }

// All lists the registered schemes, sorted by name.
func All() []Entry {
	all := append([]Entry(nil), registry...)
	sort.Slice(all, func(i, j int) bool { return all[i].Scheme.Name() < all[j].Scheme.Name() })
	return all
}

// UnknownSchemeError names a scheme that does not exist and those that do.
type UnknownSchemeError struct{ Name string }

func (e *UnknownSchemeError) Error() string {
	var names []string
	for _, e := range All() {
		names = append(names, e.Scheme.Name())
	}
	return fmt.Sprintf("unknown scheme %q; there are %s", e.Name, strings.Join(names, ", "))
}

// ByName finds a registered scheme; the error is an *UnknownSchemeError.
func ByName(name string) (Entry, error) {
	for _, e := range registry {
		if e.Scheme.Name() == name {
			return e, nil
		}
	}
	return Entry{}, &UnknownSchemeError{Name: name}
}
