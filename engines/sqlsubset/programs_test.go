package sqlsubset_test

import (
	"stockproof/engines/sqlsubset/fidelity"
	"stockproof/schemes"
)

// programSet is a set of sessions' statements to be run in many orders on the
// engine and on a real server.
type programSet struct {
	name     string
	ddl      string // schemes.Schema when empty
	setup    []string
	sessions [][]fidelity.Step
	first    []int // an order that is always run, where the point may be missed by drawing
}

func do(sql string, args ...any) fidelity.Step { return fidelity.Step{SQL: sql, Args: args} }

var die = fidelity.Step{Cut: true}

// The statements of the seed schemes, word for word.
const (
	seedLoad = `INSERT INTO goods (sku, stock, version) VALUES ($1, $2, 0)
		 ON CONFLICT (sku) DO UPDATE SET stock = EXCLUDED.stock, version = goods.version + 1`
	seedRead    = `SELECT stock FROM goods WHERE sku = $1`
	seedRestock = `UPDATE goods SET stock = stock + $1, version = version + 1 WHERE sku = $2`
	seedLook    = `SELECT stock, version FROM goods WHERE sku = $1`
	seedTake    = `UPDATE goods SET stock = stock - $1, version = version + 1 WHERE sku = $2 AND version = $3 AND stock >= $1`
	seedOrder   = `INSERT INTO orders (request_id, sku, buyer, qty) VALUES ($1, $2, $3, $4)`
	seedOrders  = `SELECT request_id, qty FROM orders WHERE sku = $1 ORDER BY request_id`

	orderOnce    = `INSERT INTO orders (request_id, sku, buyer, qty) VALUES ($1, $2, '', $3) ON CONFLICT (request_id) DO NOTHING`
	cancelOnce   = `INSERT INTO orders (request_id, sku, buyer, qty) VALUES ($1, $2, '', 0) ON CONFLICT (request_id) DO NOTHING`
	orderOf      = `SELECT qty FROM orders WHERE request_id = $1`
	ordersOf     = `SELECT count(*) FROM orders WHERE request_id = $1`
	unitsOrdered = `SELECT coalesce(sum(qty), 0) FROM orders WHERE sku = $1`
	lockStock    = `SELECT stock FROM goods WHERE sku = $1 FOR UPDATE`
	plainTake    = `UPDATE goods SET stock = stock - $1 WHERE sku = $2`
	putOut       = `INSERT INTO outbox (request_id, sku, qty, sent) VALUES ($1, $2, $3, 0)`
	toSend       = `SELECT request_id, qty FROM outbox WHERE sku = $1 AND sent = 0 ORDER BY request_id`
	sentOut      = `UPDATE outbox SET sent = 1 WHERE request_id = $1`
	ship         = `INSERT INTO shipments (sku, number, request_id, qty) VALUES ($1, $2, $3, $4)`
	shipped      = `SELECT request_id, qty FROM shipments WHERE sku = $1 ORDER BY number`

	condTake  = `UPDATE goods SET stock = stock - $1 WHERE sku = $2 AND stock >= $1`
	lockGoods = `SELECT stock, version FROM goods WHERE sku = $1 FOR UPDATE`
)

var (
	begin    = do("BEGIN")
	commit   = do("COMMIT")
	rollback = do("ROLLBACK")

	oneOfEach = []string{
		"INSERT INTO goods VALUES ('a', 2, 0)",
		"INSERT INTO goods VALUES ('b', 5, 0)",
	}
)

// ledgerDDL has all that the seed schema has not: a second unique constraint,
// a key of two columns, CHECK, DEFAULT, and columns that may be NULL.
const ledgerDDL = `
CREATE TABLE stock (
  sku text, shard bigint, units bigint NOT NULL DEFAULT 3 CHECK (units >= 0), note text,
  PRIMARY KEY (sku, shard)
);
CREATE TABLE sales (
  id text PRIMARY KEY, sku text NOT NULL, buyer text, qty bigint DEFAULT 1,
  UNIQUE (sku, buyer), CHECK (qty > 0)
);`

func dbVersionDeduct(id string, version int) []fidelity.Step {
	return []fidelity.Step{begin, do(seedTake, 1, "a", version), do(seedOrder, id, "a", id, 1), commit}
}

var programSets = []programSet{
	{name: "two db-version deducts", setup: oneOfEach, sessions: [][]fidelity.Step{
		dbVersionDeduct("r0", 0), dbVersionDeduct("r1", 0)}},
	{name: "a db-version deduct and a preload during the sale", setup: oneOfEach, sessions: [][]fidelity.Step{
		dbVersionDeduct("r0", 0), {do(seedLoad, "a", 9), do(seedRead, "a")}}},
	{name: "a deduct that rolls back, a restock, a reader", setup: oneOfEach, sessions: [][]fidelity.Step{
		{begin, do(seedTake, 1, "a", 0), rollback}, {do(seedRestock, 2, "a")}, {do(seedLook, "a")}}},
	{name: "two preloads of a new sku", sessions: [][]fidelity.Step{
		{begin, do(seedLoad, "n", 4), commit}, {begin, do(seedLoad, "n", 5), rollback}, {do(seedLoad, "n", 6)}}},
	{name: "the same request twice, one rolled back", sessions: [][]fidelity.Step{
		{begin, do(seedOrder, "r", "a", "x", 1), rollback}, {do(seedOrder, "r", "a", "y", 2), do(seedOrders, "a")}}},
	{name: "the same request twice in transactions", setup: oneOfEach, sessions: [][]fidelity.Step{
		{begin, do(condTake, 1, "a"), do(seedOrder, "r", "a", "x", 1), commit},
		{begin, do(condTake, 1, "a"), do(seedOrder, "r", "a", "y", 1), commit}}},
	{name: "an error gives the locks back before ROLLBACK", setup: append(oneOfEach, "INSERT INTO orders VALUES ('r', 'a', 'x', 1)"),
		sessions: [][]fidelity.Step{
			{begin, do(condTake, 1, "a"), do(seedOrder, "r", "a", "x", 1), do(seedRead, "a"), rollback},
			{do(condTake, 2, "a"), do(seedRead, "a")}}},
	{name: "COMMIT of an aborted transaction", setup: append(oneOfEach, "INSERT INTO orders VALUES ('r', 'a', 'x', 1)"),
		sessions: [][]fidelity.Step{
			{begin, do(condTake, 1, "a"), do(seedOrder, "r", "a", "x", 1), commit, do(seedRead, "a")}, {do(seedLook, "a")}}},
	{name: "three conditional updates for two units", setup: oneOfEach, sessions: [][]fidelity.Step{
		{begin, do(condTake, 1, "a"), commit}, {begin, do(condTake, 1, "a"), commit}, {begin, do(condTake, 1, "a"), rollback}}},
	{name: "a failed re-check keeps the lock", setup: oneOfEach, sessions: [][]fidelity.Step{
		{begin, do(condTake, 2, "a"), commit}, {begin, do(condTake, 1, "a"), do(seedRead, "a"), commit}, {do(seedRestock, 5, "a")}}},
	{name: "read for update, then write", setup: oneOfEach, sessions: [][]fidelity.Step{
		{begin, do(lockGoods, "a"), do(condTake, 1, "a"), commit}, {begin, do(lockGoods, "a"), do(condTake, 2, "a"), commit}}},
	{name: "read for update that never writes, against INSERT of the key", setup: oneOfEach, sessions: [][]fidelity.Step{
		{begin, do(lockGoods, "a"), commit}, {do("INSERT INTO goods VALUES ('a', 1, 1)")}, {do(seedLoad, "a", 7)}}},
	{name: "UPDATE uncommitted, against INSERT of the key", setup: oneOfEach, sessions: [][]fidelity.Step{
		{begin, do(seedRestock, 1, "a"), commit}, {do("INSERT INTO goods VALUES ('a', 1, 1) ON CONFLICT DO NOTHING")},
		{do("INSERT INTO goods VALUES ('a', 1, 1)")}}},
	{name: "deadlock of two", setup: oneOfEach, sessions: [][]fidelity.Step{
		{begin, do(condTake, 1, "a"), do(condTake, 1, "b"), commit}, {begin, do(condTake, 1, "b"), do(condTake, 1, "a"), commit}}},
	{name: "deadlock through the queue of a row", setup: oneOfEach, sessions: [][]fidelity.Step{
		{begin, do(condTake, 1, "a"), do(condTake, 1, "b"), commit}, {do(condTake, 1, "a")},
		{begin, do(condTake, 1, "b"), do(condTake, 1, "a"), commit}}, first: []int{0, 0, 2, 2, 1, 2, 0, 0, 2}},
	{name: "an UPDATE that fails on the version it chose does not wait", ddl: ledgerDDL,
		setup: []string{"INSERT INTO stock (sku, shard, units) VALUES ('a', 0, 1)"},
		sessions: [][]fidelity.Step{
			{begin, do("UPDATE stock SET units = units + 7 WHERE sku = 'a' AND shard = 0"), commit},
			{do("UPDATE stock SET units = units - 2 WHERE sku = 'a' AND shard = 0")},
			{do("SELECT units - 9223372036854775807 - 3 FROM stock WHERE sku = 'a' FOR UPDATE")}}},
	{name: "deadlock over INSERT", sessions: [][]fidelity.Step{
		{begin, do(seedOrder, "p", "a", "x", 1), do(seedOrder, "q", "a", "x", 1), commit},
		{begin, do(seedOrder, "q", "a", "y", 1), do(seedOrder, "p", "a", "y", 1), rollback}}},
	{name: "deleted and made again while others wait", setup: oneOfEach, sessions: [][]fidelity.Step{
		{begin, do("DELETE FROM goods WHERE sku = 'a'"), do("INSERT INTO goods VALUES ('a', 8, 1)"), commit},
		{do(condTake, 1, "a")}, {do(lockGoods, "a")}}},
	{name: "INSERT waits for a DELETE", setup: oneOfEach, sessions: [][]fidelity.Step{
		{begin, do("DELETE FROM goods WHERE sku = $1 RETURNING stock, sku", "a"), rollback},
		{do("INSERT INTO goods VALUES ('a', 1, 1) ON CONFLICT DO NOTHING RETURNING *"), do("INSERT INTO goods VALUES ('a', 1, 2)")}}},
	{name: "RETURNING after a wait", setup: oneOfEach, sessions: [][]fidelity.Step{
		{begin, do("UPDATE goods SET stock = stock * 3 WHERE sku = 'a' RETURNING stock"), commit},
		{do("UPDATE goods SET stock = stock - 1, version = version + 1 WHERE sku = $1 AND stock > $2 RETURNING stock, version, stock + version AS total", "a", 0)},
		{do("SELECT count(*), sum(stock), coalesce(sum(version), 0) FROM goods")}}},
	{name: "rows are chosen on the snapshot", setup: oneOfEach, sessions: [][]fidelity.Step{
		{begin, do(condTake, 1, "a"), do("UPDATE goods SET stock = 2, version = 7 WHERE sku = 'b'"), commit},
		{do("SELECT sku, stock, version FROM goods WHERE stock = 2 ORDER BY sku FOR UPDATE")}}},
	{name: "ordered FOR UPDATE over several rows", setup: oneOfEach, sessions: [][]fidelity.Step{
		{begin, do("SELECT * FROM goods WHERE stock > 0 ORDER BY sku DESC FOR UPDATE"), commit},
		{begin, do(condTake, 2, "a"), do(condTake, 5, "b"), commit}}},
	{name: "two columns' key and CHECK", ddl: ledgerDDL,
		setup: []string{"INSERT INTO stock (sku, shard) VALUES ('a', 0)", "INSERT INTO stock (sku, shard, units) VALUES ('a', 1, 1)"},
		sessions: [][]fidelity.Step{
			{begin, do("UPDATE stock SET units = units - 2 WHERE sku = $1 AND shard = $2", "a", 0), commit},
			{begin, do("UPDATE stock SET units = units - 2 WHERE (sku = $1) AND (shard = $2 OR shard = 7)", "a", 0), do("SELECT sum(units) FROM stock"), commit},
			{do("SELECT units, note FROM stock WHERE note IS NULL AND NOT shard <> 1")}}},
	{name: "one per buyer", ddl: ledgerDDL, sessions: [][]fidelity.Step{
		{begin, do("INSERT INTO sales (id, sku, buyer) VALUES ($1, $2, $3)", "r0", "a", "x"), commit},
		{begin, do("INSERT INTO sales (id, sku, buyer) VALUES ($1, $2, $3)", "r1", "a", "x"), commit},
		{do("INSERT INTO sales (id, sku, buyer, qty) VALUES ('r1', 'a', 'y', 2)")}}},
	{name: "one per buyer, ON CONFLICT on the second key", ddl: ledgerDDL, sessions: [][]fidelity.Step{
		{begin, do("INSERT INTO sales (id, sku, buyer) VALUES ('r0', 'a', 'x') ON CONFLICT (buyer, sku) DO NOTHING"), rollback},
		{begin, do("INSERT INTO sales (id, sku, buyer) VALUES ('r0', 'a', 'y') ON CONFLICT (sku, buyer) DO UPDATE SET qty = sales.qty + EXCLUDED.qty RETURNING qty"), commit},
		{do("INSERT INTO sales (id, sku, buyer) VALUES ('r2', 'a', 'y') ON CONFLICT (sku, buyer) DO UPDATE SET qty = sales.qty + 1 WHERE sales.qty < 2")}}},
	{name: "NULL buyers never clash", ddl: ledgerDDL, sessions: [][]fidelity.Step{
		{begin, do("INSERT INTO sales VALUES ($1, $2, $3, $4)", "r0", "a", nil, nil), commit},
		{do("INSERT INTO sales VALUES ($1, $2, $3, $4)", "r1", "a", nil, 2), do("SELECT id, qty FROM sales ORDER BY qty DESC, id")}}},
	{name: "a client dies inside a transaction while another waits", setup: oneOfEach, sessions: [][]fidelity.Step{
		{begin, do(condTake, 1, "a"), die}, {do(condTake, 2, "a")}}},
	{name: "a client dies while its statement waits", setup: oneOfEach, sessions: [][]fidelity.Step{
		{begin, do(condTake, 1, "a"), commit}, {do(seedRestock, 10, "a"), die}, {do(seedRead, "a"), do(seedRead, "a")}}},
	{name: "a client dies while its transaction waits", setup: oneOfEach, sessions: [][]fidelity.Step{
		{begin, do(condTake, 1, "a"), commit}, {begin, do(seedRestock, 10, "a"), die}, {do(condTake, 1, "a")}}},
	{name: "a half-inserted row is withdrawn", ddl: ledgerDDL, sessions: [][]fidelity.Step{
		{begin, do("INSERT INTO sales (id, sku, buyer) VALUES ('r0', 'a', 'x')"), rollback},
		{do("INSERT INTO sales (id, sku, buyer) VALUES ('r1', 'a', 'x') ON CONFLICT (id) DO NOTHING")},
		{do("INSERT INTO sales (id, sku, buyer) VALUES ('r1', 'a', 'z') ON CONFLICT (id) DO UPDATE SET qty = 9")}}},
	{name: "a row made while an INSERT waits on its first key", ddl: ledgerDDL, sessions: [][]fidelity.Step{
		{begin, do("INSERT INTO sales (id, sku, buyer) VALUES ('r0', 'a', 'y')"), rollback},
		{begin, do("INSERT INTO sales (id, sku, buyer) VALUES ('r0', 'a', 'x') ON CONFLICT (sku, buyer) DO UPDATE SET qty = 5 RETURNING id, qty"), commit},
		{do("INSERT INTO sales (id, sku, buyer) VALUES ('r9', 'a', 'x')"), do("SELECT id, qty FROM sales ORDER BY id")}}},
	{name: "errors of single statements", setup: oneOfEach, sessions: [][]fidelity.Step{
		{do("SELECT stock FROM nowhere"), do("SELECT nothing FROM goods"), do("SELECT stock FROM goods WHERE sku = 1"),
			do("UPDATE goods SET stock = 'x' WHERE sku = 'a'"), do("UPDATE goods SET stock = NULL WHERE sku = 'a'"),
			do("SELECT stock + $1 FROM goods WHERE sku = 'a'", int64(9223372036854775807)),
			do("SELECT stock FROM goods WHERE stock"), do("SELECT $1 - $2 FROM goods", 1, 2),
			do("SELECT stock, count(*) FROM goods"), do("SELECT stock FROM goods WHERE stock = $1", "12x"),
			do("SELECT stock FROM goods WHERE sku = $1", 12), do("INSERT INTO goods VALUES ('c', 1)"),
			do("INSERT INTO goods (sku, stock) VALUES ('c', 1, 2)"), do("INSERT INTO goods (sku, sku) VALUES ('c', 'd')"),
			do("INSERT INTO goods VALUES ('c', 1, 2) ON CONFLICT (stock) DO NOTHING"), do("SELECT goods.stock, orders.qty FROM goods"),
			do("SELECT 2147483647 + 1 FROM goods"), do("SELECT -stock, 'x', 3 AS three, TRUE, NULL, $1 FROM goods WHERE sku = 'a'", "y"),
			do("UPDATE goods SET stock = 1, stock = 2"), do("SELECT sum(sku) FROM goods"), do("SELECT -sku FROM goods"),
			do("INSERT INTO goods VALUES ('a', 1, 2) ON CONFLICT (sku) DO UPDATE SET stock = stock + 1"),
			do("SELECT coalesce(stock, 'z') FROM goods"), do("SELECT coalesce(sku, 1) FROM goods"), do("SELECT $2 FROM goods", 1, "q"),
			do("SELECT stock FROM goods WHERE stock = '99999999999999999999'"), do("INSERT INTO goods (sku, stock, version) VALUES (12, '7', $1)", "8"),
			do("SELECT * FROM goods"), do("SELECT stock FROM goods WHERE NOT sku"), do("SELECT stock FROM goods WHERE stock = 1 AND 2 = $1", 3)}}},
	{name: "two sql-for-update deducts and a restock", setup: oneOfEach, sessions: [][]fidelity.Step{
		{begin, do(lockStock, "a"), do(plainTake, 1, "a"), do(seedOrder, "r0", "a", "x", 1), commit},
		{begin, do(lockStock, "a"), do(plainTake, 2, "a"), do(seedOrder, "r1", "a", "y", 2), rollback},
		{do(seedRestock, 1, "a")}}},
	{name: "an sql-conditional deduct that finds too few and looks again", setup: oneOfEach, sessions: [][]fidelity.Step{
		{begin, do(condTake, 2, "a"), do(seedOrder, "r0", "a", "x", 2), commit},
		{begin, do(condTake, 1, "a"), do(seedRead, "a"), rollback}, {begin, do(condTake, 1, "none"), do(seedRead, "none"), rollback}}},
	{name: "a late order and the cancellation under its key", sessions: [][]fidelity.Step{
		{do(seedOrder, "r", "a", "x", 1), do(seedOrders, "a")}, {do(cancelOnce, "r", "a"), do(orderOf, "r")}, {do(cancelOnce, "r", "a"), do(orderOf, "r")}}},
	{name: "a cancellation waits for an order that is not committed", sessions: [][]fidelity.Step{
		{begin, do(seedOrder, "r", "a", "x", 1), rollback}, {begin, do(seedOrder, "s", "a", "x", 1), commit},
		{do(cancelOnce, "r", "a"), do(cancelOnce, "s", "a"), do(orderOf, "r"), do(orderOf, "s")}}},
	{name: "a message's order inserted again, and one under a new number", sessions: [][]fidelity.Step{
		{do(orderOnce, "r", "a", 1), do(orderOnce, "r", "a", 1), do(ordersOf, "r")}, {do(orderOnce, "r", "a", 2), do(ordersOf, "none")},
		{do(ship, "a", 1, "r", 1), do(ship, "a", 2, "r", 1), do(ship, "a", 1, "s", 1), do(shipped, "a")}}},
	{name: "an outbox and its relay", setup: oneOfEach, sessions: [][]fidelity.Step{
		{begin, do(condTake, 1, "a"), do(putOut, "r0", "a", 1), commit}, {do(toSend, "a"), do(sentOut, "r0"), do(toSend, "a")},
		{begin, do(condTake, 1, "a"), do(putOut, "r0", "a", 1), rollback}}},
	{name: "two relays note the same message", setup: []string{"INSERT INTO outbox VALUES ('r', 'a', 1, 0)"}, sessions: [][]fidelity.Step{
		{begin, do(sentOut, "r"), rollback}, {do(toSend, "a"), do(sentOut, "r")}, {do(sentOut, "r"), do(toSend, "a")}}},
	{name: "a job that adds up while orders come in", setup: oneOfEach, sessions: [][]fidelity.Step{
		{do(unitsOrdered, "a"), do(seedRead, "a"), do(unitsOrdered, "a")}, {begin, do(seedOrder, "r", "a", "x", 2), commit}, {do(seedRestock, 3, "a")}}},
	{name: "BEGIN inside, COMMIT outside", setup: oneOfEach, sessions: [][]fidelity.Step{
		{commit, rollback, begin, begin, do(condTake, 1, "a"), commit, do(seedRead, "a")}, {do(condTake, 1, "a")}}},
}

func (p programSet) schema() string {
	if p.ddl == "" {
		return schemes.Schema()
	}
	return p.ddl
}
