package schemes

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"stockproof/model"
)

func init() {
	Register(Entry{
		Scheme:     journalFirst{},
		Summary:    "recommended with Redis alone: stock, orders and refusals in one hash, one script, asked again after an error",
		Stores:     Stores{Redis: true},
		Guarantees: journalFirstGuarantees,
		Wider:      true,
	})
}

//go:embed journal_first.lua
var journalFirstSource string

//go:embed journal_first_restock.lua
var journalFirstRestockSource string

var (
	journalFirstDeduct  = named("journal-first", journalFirstSource)
	journalFirstRestock = named("journal-first-restock", journalFirstRestockSource)
)

// journalFirst keeps everything about a sale in one key: the units left, an
// order for each request that was sold, and a mark for each submission that was
// refused. So no failure can tear them apart, and a command that comes twice,
// or late, finds what it was answered. See docs/recommended.md.
type journalFirst struct{}

func (journalFirst) Name() string { return "journal-first" }

func saleKey(sku string) string { return "sale:" + sku }

const orderPrefix = "sold:"

// Load puts the article on sale once: a preload that runs again changes nothing.
func (journalFirst) Load(ctx context.Context, env Env, sku string, units int64) error {
	for _, script := range []*redis.Script{journalFirstDeduct, journalFirstRestock} {
		if err := script.Load(ctx, env.Redis).Err(); err != nil {
			return err
		}
	}
	return env.Redis.HSetNX(ctx, saleKey(sku), stockField, units).Err()
}

// Read answers the units left; ErrNoStock when the article is not on sale.
func (journalFirst) Read(ctx context.Context, env Env, sku string) (int64, error) {
	left, err := env.Redis.HGet(ctx, saleKey(sku), stockField).Int64()
	if errors.Is(err, redis.Nil) {
		return 0, fmt.Errorf("%w: %s", ErrNoStock, sku)
	}
	return left, err
}

// Orders reads the journal.
func (journalFirst) Orders(ctx context.Context, env Env, sku string) ([]model.Order, error) {
	all, err := env.Redis.HGetAll(ctx, saleKey(sku)).Result()
	if err != nil {
		return nil, err
	}
	var orders []model.Order
	for field, value := range all {
		request, is := strings.CutPrefix(field, orderPrefix)
		if !is {
			continue
		}
		units, _, _ := strings.Cut(value, " ")
		qty, err := strconv.ParseInt(units, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("order %s of %s: %w", request, sku, err)
		}
		orders = append(orders, model.Order{Request: request, Qty: qty})
	}
	slices.SortFunc(orders, func(a, b model.Order) int { return strings.Compare(a.Request, b.Request) })
	return orders, nil
}

// Deduct is one EVALSHA, and a second one where the first met an error.
func (journalFirst) Deduct(ctx context.Context, env Env, req Request) (model.Outcome, error) {
	return decide(ctx, env, req, journalFirstDeduct, model.Sold)
}

// Restock is one EVALSHA, and a second one where the first met an error.
func (journalFirst) Restock(ctx context.Context, env Env, req Request) (model.Outcome, error) {
	return decide(ctx, env, req, journalFirstRestock, model.OK)
}

// decide asks until there is an answer, twice at the most. Asking again is safe:
// whichever of the commands comes first is the one that counts.
func decide(ctx context.Context, env Env, req Request, script *redis.Script, done model.Outcome) (model.Outcome, error) {
	if err := CheckQuantity(req); err != nil {
		return model.Failed, err
	}
	ask := func() (int64, error) {
		return script.Run(ctx, env.Redis, []string{saleKey(req.SKU)}, req.Qty, req.ID, env.Client).Int64()
	}
	answer, err := ask()
	if err != nil {
		outcome := afterRedis(env, err)
		if outcome != model.Unknown {
			return outcome, err
		}
		var again error
		if answer, again = ask(); again != nil {
			return model.Unknown, errors.Join(err, again)
		}
	}
	switch answer {
	case 1:
		return done, nil
	case 0:
		return model.SoldOut, nil
	}
	return model.Failed, fmt.Errorf("%w: %s", ErrRepeated, req.ID)
}
