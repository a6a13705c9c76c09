package own

import (
	"context"
	"slices"
	"testing"

	"stockproof"
)

// Clients of live runs are processes of this test binary.
func TestMain(m *testing.M) { stockproof.Main(m, Scheme{}) }

// What the scheme is known to break. Everything else is promised.
var declared = stockproof.Declare(
	stockproof.Weakness{Fault: "client-crash", Breaks: []stockproof.Property{stockproof.LostUnits},
		Why: "a buyer who dies after the script never hears of the sale"},
	stockproof.Weakness{Fault: "reply-lost", Breaks: []stockproof.Property{stockproof.LostUnits},
		Why: "without the reply nobody knows of the sale"},
	stockproof.Weakness{Fault: "request-delayed", Breaks: []stockproof.Property{stockproof.LostUnits},
		Why: "the script runs after its buyer has given up"},
	stockproof.Weakness{Fault: "duplicate-request", Breaks: []stockproof.Property{stockproof.DoubleDeduct, stockproof.DoubleSale},
		Why: "nothing remembers a request"},
)

func TestEveryInterleavingIsAsDeclared(t *testing.T) {
	stockproof.Verify(t, Scheme{}, declared, stockproof.WithRetries("off"))
}

// careless is the scheme with the mistake that everybody makes once.
type careless struct{ Scheme }

func (careless) Name() string { return "careless" }

func (s careless) Deduct(ctx context.Context, env stockproof.Env, r stockproof.Request) (stockproof.Outcome, error) {
	left, err := s.Read(ctx, env, r.SKU)
	if err != nil {
		return stockproof.Failed, err
	}
	if left < r.Qty {
		return stockproof.SoldOut, nil
	}
	if err := env.Redis.DecrBy(ctx, "units:"+r.SKU, r.Qty).Err(); err != nil {
		return stockproof.Unknown, err
	}
	return stockproof.Sold, nil
}

func TestReadThenWriteIsConvicted(t *testing.T) {
	v, err := stockproof.Judge(t.Context(), careless{}, stockproof.UnderFaults(stockproof.None), stockproof.KeepIn(t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(v.Unexpected(), func(f stockproof.Finding) bool { return f.Property == stockproof.Oversell }) {
		t.Error("it oversells, and nobody says so:", v)
	}
}

// On real Redis: STOCKPROOF_BACKEND=process or container, see the README of stockproof.
func TestRealServersAreAsDeclared(t *testing.T) {
	if testing.Short() {
		t.Skip("needs redis-server or Docker; leave -short out to run it")
	}
	stockproof.Verify(t, Scheme{}, declared, stockproof.In(stockproof.Live), stockproof.WithRetries("off"),
		stockproof.UnderFaults(stockproof.None, stockproof.ClientCrash, stockproof.ReplyLost))
}
