package schemes

import (
	"fmt"
	"slices"
	"sort"
	"strings"
)

// Entry is a scheme with what the suite has to know about it.
type Entry struct {
	Scheme     Scheme
	Summary    string // one line
	Stores     Stores
	Guarantees Guarantees
	// Waits says that the scheme heeds Config.Replicas.
	Waits bool
	// Transacts says that the scheme uses MULTI. What a primary that insists on
	// replicas refuses inside of a transaction is outside of what explore models.
	Transacts bool
	// Wider marks a scheme beyond those of the two design notes and their controls.
	// The everyday suite leaves out its largest searches and runs it live at fewer
	// places; the build tag long leaves out nothing. stockproof verify takes it with
	// --scheme all.
	Wider bool
	// ByName says that the scheme's steps depend on what its client, buyer or
	// request is called, not only on what it is told. explore then runs the code
	// under each client's own name and takes no two clients for interchangeable.
	ByName bool
	// Hidden keeps a scheme out of All: a mutant is run by name only.
	Hidden bool
}

var registry []Entry

// Register adds a scheme, so that client processes of the same binary find it
// by name. Call it from init, or before role.RunIfAsked. It panics when the
// name is taken.
func Register(e Entry) {
	if _, err := ByName(e.Scheme.Name()); err == nil {
		panic("schemes: " + e.Scheme.Name() + " is registered twice")
	}
	registry = append(registry, e)
}

// All lists the registered schemes, sorted by name.
func All() []Entry {
	var all []Entry
	for _, e := range registry {
		if !e.Hidden {
			all = append(all, e)
		}
	}
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

// OfTheNotes lists the schemes of the two design notes and their controls, without
// the wider set.
func OfTheNotes() []Entry {
	return slices.DeleteFunc(All(), func(e Entry) bool { return e.Wider })
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
