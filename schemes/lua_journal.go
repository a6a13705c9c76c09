package schemes

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"time"

	"stockproof/model"
)

func init() {
	Register(Entry{
		Scheme:     luaJournal{},
		Summary:    "the lua-string script with a record of each request beside the stock: asked again, it gives the first answer",
		Stores:     Stores{Redis: true},
		Guarantees: luaJournalGuarantees,
		Wider:      true,
	})
}

//go:embed lua_journal.lua
var luaJournalSource string

var luaJournalScript = named("lua-journal", luaJournalSource)

// recordLife is how long the record of a request is kept, as published: a day.
const recordLife = 24 * time.Hour

// ErrRepeated answers a request that another client has submitted before and
// that was sold then. This submission has taken nothing; the purchase stands.
var ErrRepeated = errors.New("the request was sold before, to another submission of it")

// luaJournal makes the deduction idempotent: a request is decided once, as long
// as its record lives. Restocks are not recorded.
type luaJournal struct{ stringStock }

func (luaJournal) Name() string { return "lua-journal" }

// RecordLife is a day.
func (luaJournal) RecordLife() time.Duration { return recordLife }

// Load stores the units and loads the script.
func (luaJournal) Load(ctx context.Context, env Env, sku string, units int64) error {
	if err := luaJournalScript.Load(ctx, env.Redis).Err(); err != nil {
		return err
	}
	return env.Redis.Set(ctx, stockKey(sku), units, 0).Err()
}

// Deduct is one EVALSHA. A client that submits a request again, or whose library
// does, gets the first answer; another client is told of a sale as ErrRepeated.
func (luaJournal) Deduct(ctx context.Context, env Env, req Request) (model.Outcome, error) {
	if err := CheckQuantity(req); err != nil {
		return model.Failed, err
	}
	var life int64
	if env.Config.Record != Forever {
		life = or(env.Config.Record, recordLife).Milliseconds()
	}
	keys := []string{stockKey(req.SKU), "journal:" + req.SKU + ":" + req.ID}
	answer, err := luaJournalScript.Run(ctx, env.Redis, keys, req.Qty, env.Client, life).Slice()
	if err != nil {
		return afterRedis(env, err), err
	}
	if len(answer) != 2 {
		return model.Unknown, fmt.Errorf("the script answered %v", answer)
	}
	switch {
	case answer[0] != int64(1):
		return model.SoldOut, nil
	case answer[1] != env.Client:
		return model.Failed, fmt.Errorf("%w: %s", ErrRepeated, req.ID)
	}
	return model.Sold, nil
}
