package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"stockproof/faults"
	"stockproof/schemes"
)

// soakOptions are the flags of soak.
type soakOptions struct {
	scheme, retries, out, format string
	kinds                        []string
	clients, perSale             int
	duration                     time.Duration
	rate, faultRate, restockRate float64
	stock, maxQty                int64
	seed                         uint64
}

func soakCommand() *cobra.Command {
	var o soakOptions
	cmd := &cobra.Command{
		Use:   "soak",
		Short: "Random load and random faults on real servers, for a time",
		Long: `Random load and random faults on real servers, for a time: sale after sale, each
on an article of its own, with client processes that are killed and started
again, stopped, and cut off, at random steps. Between two sales nothing is in
flight and no lease is left, and there the sale is judged.

All that is drawn is drawn from the seed, which is printed: the operations, when they
begin, and which of them are hit by which fault at which step. The order in which
steps meet is the machine's.

Histories are written while they are recorded. Ctrl-C lets the operations under
way end and judges what was recorded.

Exit status: 0 every property holds, 1 one is broken, 2 bad usage, 3 no backend,
4 inconclusive.`,
		Example: "  stockproof soak --scheme hincrby --faults reply-lost --retries default --duration 10s",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !cmd.Flags().Changed("seed") {
				o.seed = uint64(time.Now().UnixNano()) >> 10 & 0xffffffff
			}
			kinds, err := o.check()
			if err != nil {
				return err
			}
			return soak(cmd, o, kinds)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.scheme, "scheme", "", "the scheme to soak (required)")
	f.IntVar(&o.clients, "clients", 6, "client processes at the same time; sales of more than 6 cannot be replayed in explore")
	f.IntVar(&o.perSale, "operations", 4, "operations of each client in one sale; more than 4 cannot be replayed in explore")
	f.DurationVar(&o.duration, "duration", 30*time.Second, "how long")
	f.Float64Var(&o.rate, "rate", 0, "operations a second, of all clients together; 0 is as fast as they can")
	f.StringSliceVar(&o.kinds, "faults", soakFaults(), "the kinds of fault to draw from, or none")
	f.Float64Var(&o.faultRate, "fault-rate", 0.1, "which part of the operations is hit by a fault, from 0 to 1")
	f.Float64Var(&o.restockRate, "restock-rate", 0, "which part of the operations puts units back, from 0 to 1")
	f.Int64Var(&o.stock, "stock", 10, "units on sale in one sale")
	f.Int64Var(&o.maxQty, "quantity", 1, "a buyer wants 1 to so many units")
	f.StringVar(&o.retries, "retries", "off", "retries of go-redis: off or default")
	f.Uint64Var(&o.seed, "seed", 0, "what everything is drawn from (default: the time)")
	f.StringVar(&o.out, "out", "evidence", "folder; histories and schedules are written below its soak/SCHEME-SEED")
	f.StringVar(&o.format, "format", "text", "text or json")
	return cmd
}

// soakFaults are the kinds of fault that a soak draws.
func soakFaults() (names []string) {
	for _, k := range faults.Kinds() {
		if k.Live && k.ID != faults.None {
			names = append(names, string(k.ID))
		}
	}
	return names
}

func (o soakOptions) check() (kinds []faults.Kind, err error) {
	if o.scheme == "" {
		return nil, usageError{errors.New("--scheme is missing; stockproof list schemes shows what there is")}
	}
	e, err := schemes.ByName(o.scheme)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(oneOf("format", o.format, "text", "json"), oneOf("retries", o.retries, faults.Retries()...)); err != nil {
		return nil, err
	}
	for _, name := range unique(o.kinds) {
		k, err := faults.ParseKind(name)
		switch {
		case err != nil:
			return nil, err
		case k == faults.None && len(o.kinds) == 1:
			return nil, o.checkNumbers()
		case !slices.Contains(soakFaults(), name):
			return nil, usageError{fmt.Errorf("--faults %s: there are none, %s", name, strings.Join(soakFaults(), ", "))}
		}
		if _, leases := e.Scheme.(schemes.Leaser); !leases && k == faults.ClientPauseShort {
			continue // the same as client-pause, see live.KindsFor
		}
		kinds = append(kinds, k)
	}
	return kinds, o.checkNumbers()
}

func (o soakOptions) checkNumbers() error {
	switch {
	case o.clients < 1 || o.clients > 64 || o.perSale < 1 || o.stock < 1 || o.maxQty < 1 || o.duration <= 0:
		return usageError{errors.New("--clients is 1 to 64; --operations, --stock and --quantity are at least 1, --duration more than 0")}
	case o.rate < 0 || o.faultRate < 0 || o.faultRate > 1 || o.restockRate < 0 || o.restockRate > 1:
		return usageError{errors.New("--rate is at least 0; --fault-rate and --restock-rate are 0 to 1")}
	}
	return nil
}

// again is the command that draws the same.
func (o soakOptions) again(kinds []faults.Kind) string {
	names := []string{string(faults.None)}
	if len(kinds) > 0 {
		names = nil
	}
	for _, k := range kinds {
		names = append(names, string(k))
	}
	return fmt.Sprintf("stockproof soak --scheme %s --clients %d --operations %d --duration %s --rate %g --faults %s --fault-rate %g --restock-rate %g --stock %d --quantity %d --retries %s --seed %d",
		o.scheme, o.clients, o.perSale, o.duration, o.rate, strings.Join(names, ","), o.faultRate, o.restockRate, o.stock, o.maxQty, o.retries, o.seed)
}
