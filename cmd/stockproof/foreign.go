package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"stockproof/histories"
	"stockproof/histories/foreign"
	"stockproof/model"
)

// foreignOptions are the flags of check for logs of others.
type foreignOptions struct {
	from, sku, unit   string
	initial           int64
	columns, outcomes map[string]string
	ops               map[string]string
}

func (o *foreignOptions) flags(f *pflag.FlagSet) {
	f.StringVar(&o.from, "from", "auto", "what the files are: history (ours), edn (Jepsen's), csv, or auto, which goes by the name")
	f.Int64Var(&o.initial, "initial", -1, "units on sale when a log of others begins")
	f.StringVar(&o.sku, "sku", "", "keep only this article of a CSV with a column sku")
	f.StringToStringVar(&o.columns, "columns", nil, "columns of a CSV, as client=buyer,call=start,…; fields are "+strings.Join(foreign.Fields(), ", "))
	f.StringToStringVar(&o.outcomes, "outcomes", nil, "words of a log for outcomes, as success=sold,none=sold_out")
	f.StringToStringVar(&o.ops, "ops", nil, "words of a log for operations, as buy=deduct,cancel=restock")
	f.StringVar(&o.unit, "time-unit", "ns", "unit of times in a CSV: ns, us, ms or s; RFC 3339 needs none")
}

// of completes the options for one file.
func (o *foreignOptions) of(path string, options histories.Options) (histories.Options, error) {
	if err := oneOf("from", o.from, "auto", "history", "edn", "csv"); err != nil {
		return options, err
	}
	from := foreign.Format(o.from)
	if o.from == "auto" {
		name := strings.TrimSuffix(strings.TrimSuffix(path, ".gz"), ".zst")
		from = foreign.Format(strings.TrimPrefix(filepath.Ext(name), "."))
	}
	if from != foreign.EDN && from != foreign.CSV {
		if o.initial >= 0 || o.sku != "" || len(o.columns) > 0 || len(o.outcomes) > 0 || len(o.ops) > 0 {
			return options, usageError{fmt.Errorf("%s: --initial, --sku, --columns, --ops and --outcomes are about logs of others; say with --from what this is", path)}
		}
		return options, nil
	}
	if o.initial < 0 {
		return options, usageError{fmt.Errorf("%s: say with --initial how many units are on sale when it begins", path)}
	}
	if err := oneOf("time-unit", o.unit, foreign.Units()...); err != nil {
		return options, err
	}
	options.Log = from
	options.Foreign = foreign.Options{SKU: o.sku, Initial: o.initial, Columns: o.columns, Unit: o.unit, Outcomes: map[string]model.Outcome{}, Ops: map[string]model.Op{}}
	for field := range o.columns {
		if !slices.Contains(foreign.Fields(), field) {
			return options, usageError{fmt.Errorf("--columns: unknown field %q; there are %s", field, strings.Join(foreign.Fields(), ", "))}
		}
	}
	for word, op := range o.ops {
		if !slices.Contains([]model.Op{model.Deduct, model.Restock, model.Read}, model.Op(op)) {
			return options, usageError{fmt.Errorf("--ops: %s=%s: there are deduct, restock, read", word, op)}
		}
		options.Foreign.Ops[word] = model.Op(op)
	}
	ours := []model.Outcome{model.Sold, model.SoldOut, model.Busy, model.Failed, model.OK, model.Value, model.Unknown}
	for word, outcome := range o.outcomes {
		if !slices.Contains(ours, model.Outcome(outcome)) {
			return options, usageError{fmt.Errorf("--outcomes: %s=%s: there are sold, sold_out, busy, failed, ok, value, unknown", word, outcome)}
		}
		options.Foreign.Outcomes[word] = model.Outcome(outcome)
	}
	return options, nil
}
