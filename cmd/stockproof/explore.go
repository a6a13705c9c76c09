package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"stockproof/evidence"
	"stockproof/explore"
	"stockproof/faults"
	"stockproof/model"
	"stockproof/schemes"
)

// exploreOptions are the flags of explore.
type exploreOptions struct {
	scheme, workload, retries, engine, format, out string
	kinds, settings                                []string
	clients, maxFaults                             amount
	memory                                         int
	stock                                          int64
	timeout                                        time.Duration
	noSymmetry                                     bool
	shard                                          string
}

func exploreCommand() *cobra.Command {
	o := exploreOptions{clients: amount{n: 3, least: 1}, maxFaults: amount{n: 1}}
	cmd := &cobra.Command{
		Use:   "explore",
		Short: "Cover every interleaving and every fault placement of one scheme",
		Long: `Cover every interleaving and every fault placement of one scheme, within bounds,
and show the shortest execution that breaks each property. Needs no server.

Before that, some execution that breaks each property is sought, with fewer
clients first; progress tells when it is found. It need not be a shortest one.

With --clients any the safety properties are decided for every number of
clients: oversell, negative-transient, negative-permanent, phantom-units and
double-deduct. docs/any-number-of-clients.md says how.

Exit status: 0 every property holds, 1 one is broken, 2 bad usage,
4 the search did not end (time, memory) or could not decide.`,
		Example: "  stockproof explore --scheme lock --clients 3 --faults 1",
		Args:    noArguments,
		RunE:    func(cmd *cobra.Command, _ []string) error { return exploreOne(cmd, o) },
	}
	f := cmd.Flags()
	f.StringVar(&o.scheme, "scheme", "", "the scheme to explore (required)")
	f.Var(&o.clients, "clients", "how many clients; more than the workload has repeat its programs; any for every number at once")
	f.Int64Var(&o.stock, "stock", 1, "units on sale")
	f.StringVar(&o.workload, "workload", "unit", "what the clients want")
	f.StringVar(&o.retries, "retries", "off", "retries of go-redis: off or default")
	f.Var(&o.maxFaults, "faults", "how many faults may happen in one execution, kinds mixed; any only with --clients any")
	f.StringSliceVar(&o.kinds, "kind", nil, "only these kinds of fault (default: all that explore places)")
	f.StringSliceVar(&o.settings, "setting", nil, "only these settings of the servers that are hit, such as rdb (default: all, and failover without WAIT)")
	f.StringVar(&o.engine, "engine", "miniredis", "what answers Redis commands: miniredis, or redis for a real redis-server")
	f.IntVar(&o.memory, "memory", 2048, "longest the search may grow, in MiB; running out is inconclusive")
	f.DurationVar(&o.timeout, "timeout", 0, "longest time for the search; 0 is none, running out is inconclusive")
	f.StringVar(&o.shard, "shard", "", "search the i-th of n parts, as i/n, divided by the faults, and write evidence.json; stockproof merge makes one report of them")
	f.BoolVar(&o.noSymmetry, "no-symmetry", false, "tell clients with the same program apart: slower, same verdicts")
	f.StringVar(&o.format, "format", "text", "text or json")
	f.StringVar(&o.out, "out", "", "folder for the witnesses, as schedules below its witnesses/ (default: they are only printed)")
	return cmd
}

func (o exploreOptions) config() (cfg explore.Config, err error) {
	if o.scheme == "" {
		return cfg, usageError{fmt.Errorf("--scheme is missing; stockproof list schemes shows what there is")}
	}
	if err := oneOf("format", o.format, "text", "json"); err != nil {
		return cfg, err
	}
	if err := oneOf("retries", o.retries, "off", "default"); err != nil {
		return cfg, err
	}
	if err := oneOf("engine", o.engine, "miniredis", "redis"); err != nil {
		return cfg, err
	}
	if o.stock < 1 || o.memory < 1 {
		return cfg, usageError{fmt.Errorf("--stock and --memory are at least 1")}
	}
	if o.maxFaults.any && !o.clients.any {
		return cfg, usageError{fmt.Errorf("--faults any needs --clients any")}
	}
	if o.clients.any && o.noSymmetry {
		return cfg, usageError{fmt.Errorf("--clients any counts clients: --no-symmetry makes no sense with it")}
	}
	entry, err := schemes.ByName(o.scheme)
	if err != nil {
		return cfg, err
	}
	load, err := faults.WorkloadByName(o.workload)
	if err != nil {
		return cfg, err
	}
	kinds := evidence.ExploreKinds()
	if o.clients.any {
		kinds = counted(kinds)
	}
	if len(o.kinds) > 0 {
		kinds = nil
		for _, name := range o.kinds {
			k, err := faults.ParseKind(name)
			if err != nil {
				return cfg, err
			}
			kinds = append(kinds, k)
		}
	}
	if o.maxFaults.n == 0 && !o.maxFaults.any {
		kinds = nil
	}
	var settings []faults.Setting
	for _, name := range o.settings {
		s, err := faults.ParseSetting(name)
		if err != nil {
			return cfg, err
		}
		settings = append(settings, s)
	}
	return explore.Config{
		Settings: settings,
		Entry:    entry, Workload: load, Clients: o.clients.n, Stock: o.stock, Retries: o.retries, Faults: kinds,
		MaxFaults: o.maxFaults.n, MemoryLimit: int64(o.memory) << 20, Engine: o.engine, NoSymmetry: o.noSymmetry,
	}, nil
}

func exploreOne(cmd *cobra.Command, o exploreOptions) error {
	cfg, err := o.config()
	if err != nil {
		return err
	}
	ctx := cmd.Context()
	if o.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.timeout)
		defer cancel()
	}
	fewerCollections()
	if o.shard != "" {
		return exploreShard(ctx, cmd, o, cfg)
	}
	if o.clients.any {
		return exploreAny(ctx, cmd, o, cfg)
	}
	r, firsts, err := searchBoth(ctx, cmd, cfg)
	if err != nil {
		return exploreError(err)
	}
	if err := writeWitnesses(o.out, cfg, r); err != nil {
		return err
	}
	if o.format == "json" {
		err = exploreJSON(cmd.OutOrStdout(), cfg, r, firsts)
	} else {
		err = exploreText(cmd.OutOrStdout(), cfg, r, firsts)
	}
	if err != nil {
		return err
	}
	var all []explore.Status
	for _, v := range r.Verdicts {
		all = append(all, v.Status)
	}
	return exitOf(all)
}

// searchBoth looks for the first witnesses, which progress tells at once, and
// then covers everything.
func searchBoth(ctx context.Context, cmd *cobra.Command, cfg explore.Config) (r *explore.Result, firsts []explore.First, err error) {
	lab := explore.NewLab()
	defer func() {
		if closeErr := lab.Close(); err == nil {
			err = closeErr
		}
	}()
	bar := newBar(cmd, 0)
	defer bar.Close()
	var all []model.Property
	for _, p := range model.Properties() {
		all = append(all, p.ID)
	}
	err = lab.FirstWitnesses(ctx, all, func(f explore.First) {
		firsts = append(firsts, f)
		bar.Tell(firstLine(f))
	}, cfg)
	if err != nil {
		return nil, nil, err
	}
	cfg.Progress = func(p explore.Progress) {
		bar.Describe(fmt.Sprintf("%d states, %d transitions, %d waiting", p.States, p.Transitions, p.Waiting))
		bar.Add(1)
	}
	r, err = lab.Run(ctx, cfg)
	return r, firsts, err
}

// firstLine says when a first witness was found.
func firstLine(f explore.First) string {
	return fmt.Sprintf("first witness of %s after %s: %d clients, %d lines", f.Property, f.After.Round(100*time.Microsecond), f.Clients, len(f.Witness.Steps))
}

// exitOf is the exit status of some verdicts, nil for 0: a violation weighs
// more than what is not known.
func exitOf(all []explore.Status) error {
	switch {
	case slices.Contains(all, explore.Violated):
		return statusError(evidence.ExitBroken)
	case slices.Contains(all, explore.Inconclusive):
		return statusError(evidence.ExitInconclusive)
	}
	return nil
}

// fewerCollections lets the heap grow to five times what is in use before it is
// collected: a search keeps nearly all it allocates, so collecting often only
// costs time (measured: 32 s against 28 s for the whole matrix on two cores).
func fewerCollections() { debug.SetGCPercent(400) }

// exploreError marks what the person who asked can mend: bounds that make no
// sense, a scheme that cannot be explored or is not deterministic.
func exploreError(err error) error {
	var differs *explore.NonDeterminismError
	if errors.Is(err, explore.ErrConfig) || errors.Is(err, explore.ErrScheme) || errors.As(err, &differs) {
		return usageError{err}
	}
	return err
}

// writeWitnesses keeps the witness of each violation as a schedule.
func writeWitnesses(out string, cfg explore.Config, r *explore.Result) error {
	if out == "" {
		return nil
	}
	for _, p := range model.Properties() {
		if w := r.Verdicts[p.ID].Witness; w != nil {
			name := fmt.Sprintf("%s.%s.retries-%s.%s", cfg.Entry.Scheme.Name(), cfg.Workload.Name, cfg.Retries, p.ID)
			if _, err := evidence.WriteWitness(out, name, w); err != nil {
				return err
			}
		}
	}
	return nil
}

func exploreText(w io.Writer, cfg explore.Config, r *explore.Result, firsts []explore.First) error {
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	t.Style().Options = table.OptionsNoBordersAndSeparators
	told := map[string][]string{}
	var order []string
	for _, p := range model.Properties() {
		v := r.Verdicts[p.ID]
		text := string(v.Status)
		if v.Status == explore.Violated {
			text += fmt.Sprintf(" (%d %s)", v.Amount, p.Unit)
			timeline := v.Witness.Timeline()
			if told[timeline] == nil {
				order = append(order, timeline)
			}
			told[timeline] = append(told[timeline], string(p.ID))
		}
		t.AppendRow(table.Row{p.ID, text, v.Detail})
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n", t.Render())
	if r.Exhaustive {
		fmt.Fprintf(&b, "covered: %s executions, everything within %d clients, %d units, %d faults\n",
			evidence.Count(r.Executions), cfg.Clients, cfg.Stock, cfg.MaxFaults)
	} else {
		fmt.Fprintf(&b, "NOT covered: %s\n", r.Why)
	}
	fmt.Fprintf(&b, "%d states, %d transitions, %d of %d placements fired, %d runs of the scheme, %d store questions, %s, %.0f MB\n",
		r.States, r.Transitions, r.PlacementsFired, r.PlacementsEnumerated, r.Extractions, r.StoreQuestions,
		r.Elapsed.Round(time.Millisecond), float64(r.Bytes)/1e6)
	for _, f := range firsts {
		fmt.Fprintln(&b, firstLine(f))
	}
	tellWitnesses(&b, order, told)
	_, err := io.WriteString(w, b.String())
	return err
}

// tellWitnesses writes each timeline once, with the properties it breaks.
func tellWitnesses(b *strings.Builder, order []string, told map[string][]string) {
	for _, timeline := range order {
		fmt.Fprintf(b, "\nshortest execution that breaks %s:\n\n%s\n", strings.Join(told[timeline], ", "), timeline)
	}
}

// exploredJSON is the form of --format json.
type exploredJSON struct {
	Scheme, Workload, Retries string
	Clients, MaxFaults        int
	Stock                     int64
	Exhaustive                bool
	Why                       string `json:",omitempty"`
	Executions                string
	States, Transitions       uint64
	Placements                evidence.Placements
	Verdicts                  []exploredVerdict
}

type exploredVerdict struct {
	Property model.Property
	Status   explore.Status
	Amount   int64
	Detail   string         `json:",omitempty"`
	Witness  string         `json:",omitempty"`
	First    *exploredFirst `json:",omitempty"`
}

// exploredFirst is a witness found early, which need not be a shortest one.
type exploredFirst struct {
	Milliseconds float64
	Clients      int
	Witness      string
}

func exploreJSON(w io.Writer, cfg explore.Config, r *explore.Result, firsts []explore.First) error {
	out := exploredJSON{
		Scheme: cfg.Entry.Scheme.Name(), Workload: cfg.Workload.Name, Retries: cfg.Retries, Clients: cfg.Clients,
		MaxFaults: cfg.MaxFaults, Stock: cfg.Stock, Exhaustive: r.Exhaustive, Why: r.Why,
		States: r.States, Transitions: r.Transitions,
		Placements: evidence.Placements{Enumerated: r.PlacementsEnumerated, Fired: r.PlacementsFired},
	}
	if r.Executions != nil {
		out.Executions = r.Executions.String()
	}
	for _, p := range model.Properties() {
		v := r.Verdicts[p.ID]
		ev := exploredVerdict{Property: p.ID, Status: v.Status, Amount: v.Amount, Detail: v.Detail}
		if v.Witness != nil {
			ev.Witness = v.Witness.Timeline()
		}
		for _, f := range firsts {
			if f.Property == p.ID {
				ev.First = &exploredFirst{float64(f.After.Microseconds()) / 1000, f.Clients, f.Witness.Timeline()}
			}
		}
		out.Verdicts = append(out.Verdicts, ev)
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", " ")
	enc.SetEscapeHTML(false)
	return enc.Encode(out)
}
