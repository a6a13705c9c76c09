package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"stockproof/evidence"
	"stockproof/evidence/claims"
	"stockproof/evidence/page"
	"stockproof/explore"
	"stockproof/faults"
	"stockproof/schemes"
)

// verifyOptions are the flags of verify.
type verifyOptions struct {
	world, out, format, engine         string
	schemes, faults, loads, allRetries []string
	clients                            amount
	maxFaults                          int
	confirm                            string
	confirmTime                        time.Duration
	subjects, declared                 []string // commands, files
	start                              time.Duration
	shard                              string
	part                               *evidence.Shard // of shard; nil: everything
}

func verifyCommand() *cobra.Command {
	o := verifyOptions{clients: amount{n: 3, least: 1}}
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Fill the matrix: scheme × fault × workload × property",
		Long: `Fill the matrix: scheme × fault × workload × property.

Judged are the schemes of the two design notes and their controls; with
--scheme all everybody, third parties included.

The explore world covers every interleaving and fault placement within bounds
and needs no server. The live world runs every placement on real servers.

Each execution that explore found is replayed on real servers where there are
some (--confirm auto), which evidence.json notes as confirmed_live; what was not
replayed is named with the reason. With --confirm off none is, with --confirm
require a missing backend is an error.

Exit status: 0 every verdict is as the scheme declares it, 1 one is not,
2 bad usage, 3 no backend for live runs, 4 a verdict is inconclusive.`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.forSubjects(cmd.Flags().Changed); err != nil {
				return err
			}
			return verify(cmd, o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.world, "world", "explore", "explore, live or all")
	f.StringVar(&o.engine, "engine", "miniredis", "what answers Redis commands in explore: miniredis, or redis for a real redis-server")
	f.Var(&o.clients, "clients", "clients in explore; more than a workload has repeat its programs; any judges the safety properties for every number")
	f.IntVar(&o.maxFaults, "faults", 1, "faults in one execution in explore")
	f.StringVar(&o.out, "out", "evidence", "folder for evidence.json, report.html, witnesses, histories and pictures")
	f.StringVar(&o.format, "format", "text", "what to print: text, json, markdown, junit or github")
	f.StringArrayVar(&o.subjects, "subject", nil, "judge this program, a command for the shell, instead of schemes; see docs/subject-protocol.md")
	f.StringArrayVar(&o.declared, "declare", nil, "file with the known weaknesses of a subject")
	f.DurationVar(&o.start, "subject-start", 30*time.Second, "how long a subject may take to start")
	f.StringSliceVar(&o.schemes, "scheme", nil, "only these schemes, or all (default: those of the two design notes)")
	f.StringSliceVar(&o.faults, "fault", nil, "only these faults (default: all)")
	f.StringSliceVar(&o.loads, "workload", nil, "only these workloads (default: all)")
	f.StringVar(&o.confirm, "confirm", "auto", "replay what explore found on real servers: auto (where there are some), off, or require")
	f.DurationVar(&o.confirmTime, "confirm-time", 5*time.Minute, "begin no further replay after this long; 0: replay all")
	f.StringVar(&o.shard, "shard", "", "do the i-th of n parts, as i/n; stockproof merge makes one report of them")
	f.StringSliceVar(&o.allRetries, "retries", faults.Retries(), "retry settings of go-redis: off, default")
	return cmd
}

const confirmOff = "--confirm off"

// forSubjects says which settings there are for subjects, and sets what has only
// one value for them.
func (o *verifyOptions) forSubjects(changed func(string) bool) error {
	if len(o.subjects) == 0 {
		if changed("declare") || changed("subject-start") {
			return usageError{errors.New("--declare and --subject-start go with --subject")}
		}
		return nil
	}
	for flag, why := range map[string]string{
		"scheme":  "--subject is judged instead of schemes",
		"retries": "what a subject's client library sends again is the subject's own setting",
		"clients": "it is for explore, and explore runs Go code only",
		"faults":  "it is for explore, and explore runs Go code only",
		"engine":  "it is for explore, and explore runs Go code only",
		"shard":   "a subject is started once for all its runs",
	} {
		if changed(flag) {
			return usageError{fmt.Errorf("--%s does not go with --subject: %s", flag, why)}
		}
	}
	if changed("world") && o.world != "live" {
		return usageError{fmt.Errorf("--world %s does not go with --subject: explore runs Go code only", o.world)}
	}
	if o.start <= 0 {
		return usageError{errors.New("--subject-start: want a time above 0")}
	}
	o.world, o.allRetries = "live", []string{"default"}
	return nil
}

// everyScheme stands for all of them.
const everyScheme = "all"

// selection is what the flags ask for.
type selection struct {
	entries []schemes.Entry
	kinds   []faults.Kind
	loads   []faults.Workload
	retries []string
}

func (o verifyOptions) selection() (s selection, err error) {
	if err := oneOf("world", o.world, "explore", "live", "all"); err != nil {
		return s, err
	}
	if err := oneOf("format", o.format, evidence.Formats()...); err != nil {
		return s, err
	}
	if err := oneOf("engine", o.engine, "miniredis", "redis"); err != nil {
		return s, err
	}
	if err := oneOf("confirm", o.confirm, "auto", "off", "require"); err != nil {
		return s, err
	}
	if o.confirm == "require" && o.world == "live" {
		return s, usageError{errors.New("--confirm require: --world live has no executions of explore to replay")}
	}
	if o.confirmTime < 0 {
		return s, usageError{errors.New("--confirm-time is not negative")}
	}
	if o.maxFaults < 1 {
		return s, usageError{errors.New("--faults is at least 1")}
	}
	if o.clients.any && o.world != "explore" {
		return s, usageError{fmt.Errorf("--clients any is for --world explore: no live run has any number of clients")}
	}
	for _, r := range o.allRetries {
		if err := oneOf("retries", r, faults.Retries()...); err != nil {
			return s, err
		}
	}
	s.retries = unique(o.allRetries)
	s.entries, s.loads = schemes.OfTheNotes(), faults.Workloads()
	if len(o.subjects) > 0 {
		s.entries = nil // they say who they are when they run
	}
	for _, k := range faults.Kinds() {
		s.kinds = append(s.kinds, k.ID)
	}
	switch {
	case slices.Equal(o.schemes, []string{everyScheme}):
		s.entries = schemes.All()
	case len(o.schemes) > 0:
		s.entries = nil
		for _, name := range unique(o.schemes) {
			e, err := schemes.ByName(name)
			if err != nil {
				return s, err
			}
			s.entries = append(s.entries, e)
		}
	}
	if len(o.faults) > 0 {
		s.kinds = nil
		for _, name := range unique(o.faults) {
			k, err := faults.ParseKind(name)
			if err != nil {
				return s, err
			}
			placed := o.world != "live" && slices.Contains(evidence.ExploreKinds(), k) ||
				o.world != "explore" && faults.PlacedLive(k)
			if !placed {
				// Leaving out what was asked for would look like a verdict about it.
				return s, usageError{fmt.Errorf("--fault %s: --world %s does not place it; stockproof list faults shows who does", k, o.world)}
			}
			s.kinds = append(s.kinds, k)
		}
		if o.world == "live" && len(o.subjects) == 0 && !slices.ContainsFunc(s.entries, func(e schemes.Entry) bool { return len(liveKinds(e, s.kinds)) > 0 }) {
			return s, usageError{errors.New("--fault client-pause-short: none of these schemes has a lease; client-pause says the same of them")}
		}
	}
	if len(o.loads) > 0 {
		s.loads = nil
		for _, name := range unique(o.loads) {
			w, err := faults.WorkloadByName(name)
			if err != nil {
				return s, err
			}
			s.loads = append(s.loads, w)
		}
	}
	return s, nil
}

func verify(cmd *cobra.Command, o verifyOptions) error {
	s, err := o.selection()
	if err != nil {
		return err
	}
	if o.part, err = o.shardOf(s); err != nil {
		return err
	}
	report := evidence.Report{Schema: evidence.Schema}
	report.Bounds.Shard = o.part
	var broke error
	if o.world != "live" {
		broke = verifyExplore(cmd, o, s, &report)
	}
	if o.world == "explore" && broke == nil {
		broke = confirmExplored(cmd, o, &report)
	}
	if o.world != "explore" && broke == nil {
		broke = verifyLive(cmd, o, s, &report)
	}
	if broke != nil {
		if len(report.Cells) == 0 {
			return broke
		}
		// What was found until then is kept, and says that it is not all.
		report.Bounds.Incomplete = broke.Error()
	}
	evidence.Sort(report.Cells)
	if report.Facts, err = claims.Facts(cmd.Context()); err != nil {
		return err
	}
	report.Claims = claims.Judge(report)
	path, err := report.WriteFile(o.out)
	if err != nil {
		return err
	}
	shown, err := page.WriteFile(o.out, report)
	if err != nil {
		return err
	}
	if err := report.Render(cmd.OutOrStdout(), o.format); err != nil {
		return err
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "evidence: %s\nreport: %s\n", path, shown)
	if broke != nil {
		// A promise that was already seen broken weighs more than what is missing.
		for _, c := range report.Surprises() {
			if c.Verdict != evidence.Inconclusive {
				fmt.Fprintf(cmd.ErrOrStderr(), "stockproof: %v\n", broke)
				return statusError(evidence.ExitBroken)
			}
		}
		return broke
	}
	if status := report.Exit(); status != evidence.ExitOK {
		return statusError(status)
	}
	return nil
}

// shardOf reads --shard. What all shards together answer is told with everything
// that was left to a default.
func (o verifyOptions) shardOf(s selection) (*evidence.Shard, error) {
	if o.shard == "" {
		return nil, nil
	}
	var words []string
	for _, e := range s.entries {
		words = append(words, e.Scheme.Name())
	}
	asked := "verify --scheme " + strings.Join(words, ",")
	words = nil
	for _, k := range s.kinds {
		words = append(words, string(k))
	}
	asked += " --fault " + strings.Join(words, ",")
	words = nil
	for _, l := range s.loads {
		words = append(words, l.Name)
	}
	asked += fmt.Sprintf(" --workload %s --retries %s --world %s --engine %s --clients %s --faults %d --confirm %s",
		strings.Join(words, ","), strings.Join(s.retries, ","), o.world, o.engine, o.clients.String(), o.maxFaults, o.confirm)
	return newShard(o.shard, asked)
}

func newShard(text, asked string) (*evidence.Shard, error) {
	shard, err := evidence.ParseShard(text)
	if err != nil {
		return nil, usageError{fmt.Errorf("--shard: %w", err)}
	}
	shard.Asked = asked
	if shard.Version, err = evidence.ProgramVersion(); err != nil {
		return nil, err
	}
	return &shard, nil
}

// unique drops what was said before.
func unique(names []string) []string {
	var kept []string
	for _, n := range names {
		if !slices.Contains(kept, n) {
			kept = append(kept, n)
		}
	}
	return kept
}

// counted keeps the kinds that are placed among any number of clients.
func counted(kinds []faults.Kind) []faults.Kind {
	return slices.DeleteFunc(slices.Clone(kinds), func(k faults.Kind) bool { return explore.NotCounted(k) != "" })
}

func verifyExplore(cmd *cobra.Command, o verifyOptions, s selection, report *evidence.Report) (err error) {
	kinds := faults.Within(s.kinds, evidence.ExploreKinds())
	if o.clients.any && len(o.faults) == 0 {
		kinds = counted(kinds)
	}
	groups := evidence.ExploreGroups(s.entries, kinds, s.loads, s.retries)
	if o.part != nil && len(groups) < o.part.Of {
		return usageError{fmt.Errorf("--shard %s: there are only %d parts", o.shard, len(groups))}
	}
	groups = slices.DeleteFunc(groups, func(evidence.ExploreGroup) bool { return !o.part.Mine() })
	fewerCollections()
	bounds := evidence.DefaultExploreBounds()
	bounds.MaxFaults, bounds.Engine = o.maxFaults, o.engine
	if cmd.Flags().Changed("clients") {
		bounds.Clients = o.clients.n // else the workload's, which are three, or two for some faults
	}
	lab := explore.NewLab()
	defer func() {
		if closeErr := lab.Close(); err == nil {
			err = closeErr
		}
	}()
	bar := newBar(cmd, len(groups))
	defer bar.Close()
	judge, add := evidence.FromExplore, report.Bounds.AddExplore
	if o.clients.any {
		judge, add = evidence.FromAny, report.Bounds.AddAny
	}
	cells, err := judge(cmd.Context(), lab, groups, bounds, o.out, func(g evidence.ExploreGroup, _ []evidence.Cell) {
		bar.Describe("explore " + g.Name())
		bar.Add(1)
	})
	report.Cells = append(report.Cells, cells...)
	bounds.Clients = o.clients.n
	add(bounds)
	return exploreError(err)
}
