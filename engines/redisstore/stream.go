package redisstore

import (
	"fmt"
	"regexp"
	"sort"
	"strconv"
	"strings"
)

// A stream in a State is flat, like every other value: its entries in their
// order, then each of its groups by name, and after a group what it has
// delivered and nobody has acknowledged, in the order of the entries.
//
//	entry 1-0 2 request a.1     id, number of words, fields and values
//	group workers 1-0           name, last id delivered
//	pending workers 1-0 worker  group, id, consumer
//
// When and how often an entry was delivered is left out, and so are consumers
// with nothing pending: only commands that are not allowed show them (XPENDING,
// XINFO, XCLAIM, XAUTOCLAIM). Nothing that is allowed takes an entry out, so the
// last id is that of the last entry.
const (
	entryWord   = "entry"
	groupWord   = "group"
	pendingWord = "pending"
)

type stream struct {
	entries []streamEntry
	groups  []streamGroup
}

type streamEntry struct {
	id    string
	words []string
}

type streamGroup struct {
	name, last string
	pending    []streamPending
}

type streamPending struct{ id, consumer string }

func (s stream) values() []string {
	var v []string
	for _, e := range s.entries {
		v = append(append(v, entryWord, e.id, strconv.Itoa(len(e.words))), e.words...)
	}
	sort.Slice(s.groups, func(i, j int) bool { return s.groups[i].name < s.groups[j].name })
	for _, g := range s.groups {
		v = append(v, groupWord, g.name, fullID(g.last))
		for _, p := range g.pending {
			v = append(v, pendingWord, g.name, p.id, p.consumer)
		}
	}
	return v
}

// fullID writes an id with both of its numbers, as Redis answers it.
func fullID(id string) string {
	if strings.Contains(id, "-") {
		return id
	}
	return id + "-0"
}

// rebuild lists the commands that make a stream out of its values.
func (k Key) rebuild() (commands [][]string) {
	for v := k.Values; len(v) > 0; {
		switch v[0] {
		case entryWord:
			n, _ := strconv.Atoi(v[2]) // values wrote it
			commands = append(commands, append([]string{"XADD", k.Name, v[1]}, v[3:3+n]...))
			v = v[3+n:]
		case groupWord:
			commands = append(commands, []string{"XGROUP", "CREATE", k.Name, v[1], v[2], "MKSTREAM"})
			v = v[3:]
		default: // pending
			commands = append(commands, []string{"XCLAIM", k.Name, v[1], v[3], "0", v[2], "FORCE", "JUSTID"})
			v = v[4:]
		}
	}
	return commands
}

// readStream reads a stream off the replies, already parsed, to XRANGE key - +,
// XINFO GROUPS key, and for each of the groups XPENDING key group - + count.
// An entry whose id was taken off the clock is ErrOutside.
func readStream(entries, groups any, pending []any) (s stream, err error) {
	for _, item := range items(entries) {
		e := items(item)
		if len(e) != 2 {
			return s, fmt.Errorf("a stream's entry reads %v", item)
		}
		entry := streamEntry{id: fmt.Sprint(e[0])}
		if clockID(entry.id) {
			return s, fmt.Errorf("%w: XADD with an id that Redis chooses by its clock", ErrOutside)
		}
		for _, w := range items(e[1]) {
			entry.words = append(entry.words, fmt.Sprint(w))
		}
		s.entries = append(s.entries, entry)
	}
	for i, item := range items(groups) {
		var g streamGroup
		fields := items(item)
		for f := 0; f+1 < len(fields); f += 2 {
			switch fmt.Sprint(fields[f]) {
			case "name":
				g.name = fmt.Sprint(fields[f+1])
			case "last-delivered-id":
				g.last = fmt.Sprint(fields[f+1])
			}
		}
		if g.name == "" || g.last == "" || i >= len(pending) {
			return s, fmt.Errorf("a stream's group reads %v", item)
		}
		for _, item := range items(pending[i]) {
			p := items(item)
			if len(p) != 4 {
				return s, fmt.Errorf("a stream's pending entry reads %v", item)
			}
			g.pending = append(g.pending, streamPending{fmt.Sprint(p[0]), fmt.Sprint(p[1])})
		}
		s.groups = append(s.groups, g)
	}
	return s, nil
}

func items(v any) []any {
	all, _ := v.([]any)
	return all
}

// manyPending is how many pending entries of a group are read: all.
const manyPending = "1000000"

var givenID = regexp.MustCompile(`^[0-9]+-[0-9]+$`)

// clockID says whether an id is one that Redis makes out of the time of day:
// milliseconds since 1970, which have been more than 10^12 since 2001.
func clockID(id string) bool {
	ms, _, _ := strings.Cut(id, "-")
	return len(ms) > 12
}

// checkStream refuses what reads the clock, waits, or takes entries out.
func checkStream(args []string) error {
	switch name := strings.ToUpper(args[0]); name {
	case "XADD":
		if len(args) > 2 && !givenID.MatchString(args[2]) {
			return fmt.Errorf("%w: XADD %s: want an id such as 1-0", ErrOutside, args[2])
		}
	case "XGROUP":
		if len(args) > 1 && !strings.EqualFold(args[1], "CREATE") {
			return fmt.Errorf("%w: XGROUP %s", ErrOutside, args[1])
		}
	case "XREADGROUP":
		for _, a := range args {
			if strings.EqualFold(a, "STREAMS") {
				break
			}
			if strings.EqualFold(a, "BLOCK") {
				return fmt.Errorf("%w: XREADGROUP BLOCK", ErrOutside)
			}
		}
	}
	return nil
}
