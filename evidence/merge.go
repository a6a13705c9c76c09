package evidence

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
)

// MergeError says why reports are not parts of one.
type MergeError struct{ File, Reason string }

func (e *MergeError) Error() string { return e.File + ": " + e.Reason }

// Merge makes one report of the shards of one run, all of them, and of tables of
// costs, in any order; names are for errors. Claims are left for package claims. The
// error is a *MergeError: a shard is missing or there twice, they were asked
// different things or have other bounds, or two say something of the same.
func Merge(reports []Report, names []string) (Report, error) {
	if len(reports) == 0 {
		return Report{}, &MergeError{"merge", "no report"}
	}
	out := Report{Schema: Schema}
	first := -1 // of those with verdicts
	seen := map[int]string{}
	cells, costs := map[cellKey]string{}, map[string]string{}
	for i, r := range reports {
		bad := func(format string, args ...any) (Report, error) {
			return Report{}, &MergeError{names[i], fmt.Sprintf(format, args...)}
		}
		for _, c := range r.Cost {
			key := fmt.Sprintf("%s, %s, %g futile, %d SKUs, %d connections, offered %v", c.Scheme, c.Name(), c.Futile, c.SKUs, c.Connections, rate(c))
			if other, there := costs[key]; there {
				return bad("%s also has the cost of %s", other, key)
			}
			costs[key] = names[i]
		}
		out.Cost = append(out.Cost, r.Cost...)
		if len(r.Cells) == 0 && r.Bounds.Shard == nil && len(r.Cost) > 0 {
			for _, a := range r.Bounds.Assumptions {
				if !slices.Contains(out.Bounds.Assumptions, a) {
					out.Bounds.Assumptions = append(out.Bounds.Assumptions, a)
				}
			}
			continue
		}
		if err := fits(reports, names, first, i); err != "" {
			return bad("%s", err)
		}
		if s := r.Bounds.Shard; s != nil {
			if s.Index < 1 || s.Index > s.Of || s.Of > mostShards {
				return bad("shard %d/%d", s.Index, s.Of)
			}
			if other, there := seen[s.Index]; there {
				return bad("shard %d/%d is also in %s", s.Index, s.Of, other)
			}
			seen[s.Index] = names[i]
		}
		for _, c := range r.Cells {
			if other, there := cells[c.key()]; there {
				return bad("%s also has a verdict on %s", other, c.name())
			}
			cells[c.key()] = names[i]
		}
		out.Cells = append(out.Cells, r.Cells...)
		out.join(r, first < 0)
		if first < 0 {
			first = i
		}
	}
	if first >= 0 && reports[first].Bounds.Shard != nil {
		var missing []string
		of := reports[first].Bounds.Shard.Of
		for k := 1; k <= of; k++ {
			if _, there := seen[k]; !there {
				missing = append(missing, fmt.Sprintf("%d/%d", k, of))
			}
		}
		if len(missing) > 0 {
			return Report{}, &MergeError{names[first], "missing: shard " + strings.Join(missing, ", ")}
		}
	}
	Sort(out.Cells)
	return out, nil
}

func rate(c Cost) any {
	if c.OfferedRate == nil {
		return "as answered"
	}
	return *c.OfferedRate
}

// fits says why the i-th report is no part of what the first with verdicts is a
// part of.
func fits(reports []Report, names []string, first, i int) string {
	if first < 0 {
		return ""
	}
	a, b := reports[first], reports[i]
	one, other := a.Bounds.Shard, b.Bounds.Shard
	switch {
	case one == nil || other == nil:
		return "not a shard of what " + names[first] + " is; shards merge with shards, a whole report with costs"
	case one.Of != other.Of:
		return fmt.Sprintf("one of %d shards, %s is one of %d", other.Of, names[first], one.Of)
	case one.Asked != other.Asked:
		return fmt.Sprintf("answers %q, %s answers %q", other.Asked, names[first], one.Asked)
	case one.Version != other.Version:
		return fmt.Sprintf("of version %s of the program, %s is of %s", other.Version, names[first], one.Version)
	case !reflect.DeepEqual(a.Bounds.shared(), b.Bounds.shared()):
		return "other bounds than " + names[first]
	case !reflect.DeepEqual(a.Facts, b.Facts):
		return "other facts than " + names[first]
	}
	return ""
}

// shared are the bounds that all shards of one run have.
func (b Bounds) shared() Bounds {
	b.Shard, b.Confirmed, b.Unconfirmed, b.Differences, b.Incomplete = nil, nil, "", nil, ""
	return b
}

// join takes over what one shard says beside its cells.
func (r *Report) join(s Report, first bool) {
	b := &r.Bounds
	if first {
		costs := b.Assumptions
		*b = s.Bounds.shared()
		b.Assumptions = append(slices.Clone(b.Assumptions), costs...)
		r.Facts = s.Facts
	}
	if c := s.Bounds.Confirmed; c != nil {
		if b.Confirmed == nil {
			b.Confirmed = &Confirmed{Backend: c.Backend}
		}
		b.Confirmed.Witnesses += c.Witnesses
		b.Confirmed.AsFound += c.AsFound
		b.Confirmed.Otherwise = append(b.Confirmed.Otherwise, c.Otherwise...)
		b.Confirmed.Open = append(b.Confirmed.Open, c.Open...)
	}
	b.Differences = append(b.Differences, s.Bounds.Differences...)
	b.Unconfirmed = joinWords(b.Unconfirmed, s.Bounds.Unconfirmed)
	b.Incomplete = joinWords(b.Incomplete, s.Bounds.Incomplete)
}

func joinWords(a, b string) string {
	switch {
	case a == "" || a == b:
		return b
	case b == "" || slices.Contains(strings.Split(a, "; "), b):
		return a
	}
	return a + "; " + b
}

// CopyWitnesses copies the witnesses of cells from beside the files they came in to
// below dir.
func CopyWitnesses(dir string, reports []Report, files []string) error {
	for i, r := range reports {
		for _, c := range r.Cells {
			if c.Witness == "" {
				continue
			}
			if !filepath.IsLocal(c.Witness) {
				return &MergeError{files[i], fmt.Sprintf("witness %q is not below its folder", c.Witness)}
			}
			to := filepath.Join(dir, c.Witness)
			raw, err := os.ReadFile(filepath.Join(filepath.Dir(files[i]), c.Witness))
			if errors.Is(err, os.ErrNotExist) {
				continue // the report shows verdicts without their executions, and says so
			}
			if err != nil {
				return err
			}
			if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
				return err
			}
			if err := os.WriteFile(to, raw, 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}
