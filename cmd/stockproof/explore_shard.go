package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"stockproof/evidence"
	"stockproof/evidence/claims"
	"stockproof/explore"
	"stockproof/faults"
)

// exploreShard is explore --shard: a part of the search, as cells.
func exploreShard(ctx context.Context, cmd *cobra.Command, o exploreOptions, cfg explore.Config) (err error) {
	switch {
	case o.clients.any:
		return usageError{errors.New("--shard does not go with --clients any: that is one search for every number")}
	case slices.Contains(cfg.Settings, faults.Wait):
		return usageError{errors.New("--shard does not go with --setting wait, which is a setting of the scheme too; verify --fault redis-failover --shard has it")}
	}
	parts := evidence.Parts(cfg)
	shard, err := newShard(o.shard, o.asked(cfg))
	if err != nil {
		return err
	}
	if len(parts) < shard.Of {
		return usageError{fmt.Errorf("--shard %s: there are only %d parts", o.shard, len(parts))}
	}
	parts = slices.DeleteFunc(parts, func(evidence.Part) bool { return !shard.Mine() })
	if o.out == "" {
		o.out = "evidence"
	}
	report := evidence.Report{Schema: evidence.Schema}
	report.Bounds.Shard = shard
	report.Bounds.AddExplore(evidence.ExploreBounds{Clients: cfg.Clients, MaxFaults: cfg.MaxFaults, Stock: []int64{cfg.Stock}, Engine: cfg.Engine})
	lab := explore.NewLab()
	defer func() { err = errors.Join(err, lab.Close()) }()
	bar := newBar(cmd, len(parts))
	report.Cells, err = evidence.FromParts(ctx, lab, cfg, parts, o.out, func(p evidence.Part) {
		bar.Describe(p.Name())
		bar.Add(1)
	})
	bar.Close()
	if err != nil {
		return exploreError(err)
	}
	evidence.Sort(report.Cells)
	if report.Facts, err = claims.Facts(ctx); err != nil {
		return err
	}
	report.Claims = claims.Judge(report)
	path, err := report.WriteFile(o.out)
	if err != nil {
		return err
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "evidence: %s\n", path)
	if err := report.Render(cmd.OutOrStdout(), o.format); err != nil {
		return err
	}
	var all []explore.Status
	for _, c := range report.Cells {
		all = append(all, explore.Status(c.Verdict))
	}
	return exitOf(all)
}

// asked is what all shards of an explore answer.
func (o exploreOptions) asked(cfg explore.Config) string {
	var kinds, settings []string
	for _, k := range cfg.Faults {
		kinds = append(kinds, string(k))
	}
	for _, s := range cfg.Settings {
		settings = append(settings, string(s))
	}
	return fmt.Sprintf("explore --scheme %s --clients %d --stock %d --workload %s --retries %s --faults %d --kind %s --setting %s --engine %s --memory %d --no-symmetry=%t",
		o.scheme, cfg.Clients, cfg.Stock, cfg.Workload.Name, cfg.Retries, cfg.MaxFaults, strings.Join(kinds, ","), strings.Join(settings, ","), cfg.Engine, o.memory, cfg.NoSymmetry)
}
