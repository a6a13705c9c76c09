// Package redisstore is Redis as a pure function: given everything a server
// holds and one command, what it answers and what it holds then. explore asks
// each question once and keeps the answer, so an engine may be slow, but it
// has to be right: one engine is an embedded miniredis, the other the real
// redis-server, and both take the same questions.
package redisstore

import (
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"
)

// Type of a key, in the words of the TYPE command.
type Type string

// The types a State can hold. A command that makes another one is an error.
const (
	String Type = "string"
	Hash   Type = "hash"
	List   Type = "list"
	Set    Type = "set"
	Stream Type = "stream"
)

// Key is one key of the data set.
type Key struct {
	Name string
	Type Type
	// Values is the string itself, the elements of a list in their order, the
	// members of a set sorted, or field, value, field, value of a hash sorted
	// by field. Those of a stream are written down in stream.go.
	Values []string
	// TTL is what is left to live, in whole milliseconds; 0 means for ever.
	TTL time.Duration
}

// State is all that one Redis holds. It is a value: nothing here changes a
// State in place.
type State struct {
	Keys     []Key             // sorted by name
	Scripts  map[string]string // script cache: SHA1 to source
	Sessions []Session         // sorted by name
}

// Encode is the canonical text of a state: equal texts, equal states.
func (s State) Encode() string {
	var b strings.Builder
	b.WriteString(s.Data())
	for _, c := range s.Sessions {
		c.encode(&b)
	}
	return b.String()
}

// Data is the canonical text of what does not belong to a connection: keys and
// scripts.
func (s State) Data() string {
	var b strings.Builder
	for _, k := range s.Keys {
		fmt.Fprintf(&b, "%s %q %d", k.Type, k.Name, k.TTL.Milliseconds())
		for _, v := range k.Values {
			b.WriteByte(' ')
			b.WriteString(strconv.Quote(v))
		}
		b.WriteByte('\n')
	}
	for _, sha := range s.shas() {
		b.WriteString("script ")
		b.WriteString(sha)
		b.WriteByte('\n')
	}
	return b.String()
}

func (s State) shas() []string {
	shas := make([]string, 0, len(s.Scripts))
	for sha := range s.Scripts {
		shas = append(shas, sha)
	}
	sort.Strings(shas)
	return shas
}

// sorted puts keys, fields and members in their canonical order.
func (s State) sorted() State {
	sort.Slice(s.Keys, func(i, j int) bool { return s.Keys[i].Name < s.Keys[j].Name })
	sort.Slice(s.Sessions, func(i, j int) bool { return s.Sessions[i].Name < s.Sessions[j].Name })
	for i := range s.Keys {
		switch k := &s.Keys[i]; k.Type {
		case Set:
			sort.Strings(k.Values)
		case Hash:
			sort.Sort(fields(k.Values))
		}
	}
	return s
}

type fields []string

func (f fields) Len() int           { return len(f) / 2 }
func (f fields) Less(i, j int) bool { return f[2*i] < f[2*j] }
func (f fields) Swap(i, j int) {
	f[2*i], f[2*j] = f[2*j], f[2*i]
	f[2*i+1], f[2*j+1] = f[2*j+1], f[2*i+1]
}

// Rename applies r to every name and value; explore uses it to give clients
// other names. The script cache is not touched.
func (s State) Rename(r *strings.Replacer) State {
	t := State{Keys: make([]Key, len(s.Keys)), Scripts: s.Scripts}
	for _, c := range s.Sessions {
		t.Sessions = append(t.Sessions, c.renamed(r))
	}
	for i, k := range s.Keys {
		k.Name = r.Replace(k.Name)
		values := make([]string, len(k.Values))
		for j, v := range k.Values {
			values[j] = r.Replace(v)
		}
		k.Values = values
		t.Keys[i] = k
	}
	return t.sorted()
}

// After is the state once d has passed: keys whose time to live is over are
// gone. That is a change to who watches them.
func (s State) After(d time.Duration) State {
	t := State{Scripts: s.Scripts, Sessions: s.Sessions}
	for _, k := range s.Keys {
		if k.TTL > 0 {
			if k.TTL -= d; k.TTL <= 0 {
				t.Sessions = touched(t.Sessions, k.Name)
				continue
			}
		}
		t.Keys = append(t.Keys, k)
	}
	return t
}

// NextExpiry is the shortest time to live; ok is false when nothing expires.
func (s State) NextExpiry() (d time.Duration, ok bool) {
	for _, k := range s.Keys {
		if k.TTL > 0 && (!ok || k.TTL < d) {
			d, ok = k.TTL, true
		}
	}
	return d, ok
}

// Without is the state once keys are gone by the server's own doing. That is a
// change to who watches them.
func (s State) Without(names ...string) State {
	t := State{Scripts: s.Scripts, Sessions: s.Sessions}
	for _, k := range s.Keys {
		if slices.Contains(names, k.Name) {
			t.Sessions = touched(t.Sessions, k.Name)
			continue
		}
		t.Keys = append(t.Keys, k)
	}
	return t
}

// WithoutScripts is the state after SCRIPT FLUSH.
func (s State) WithoutScripts() State { return State{Keys: s.Keys, Sessions: s.Sessions} }

// Restarted is the state after the server has ended and come back with the same
// data: it knows no script, and nothing of any connection.
func (s State) Restarted() State { return State{Keys: s.Keys} }

// WithScript is the state after a script was loaded.
func (s State) withScript(sha, source string) State {
	scripts := map[string]string{sha: source}
	for k, v := range s.Scripts {
		scripts[k] = v
	}
	return State{Keys: s.Keys, Scripts: scripts, Sessions: s.Sessions}
}

// Lookup finds a key.
func (s State) Lookup(name string) (Key, bool) {
	for _, k := range s.Keys {
		if k.Name == name {
			return k, true
		}
	}
	return Key{}, false
}
