package model

import "fmt"

// Property is the stable identifier of a law a run keeps or breaks.
type Property string

// The properties, with S = initial + restocked units.
const (
	// Oversell: units answered sold > S. An unknown deduct does not count as
	// sold; an unknown restock counts as applied, so a report is never due to
	// a doubt.
	Oversell Property = "oversell"
	// NegativeTransient: the stored counter was below zero at some moment.
	NegativeTransient Property = "negative-transient"
	// NegativePermanent: the stored counter is below zero at rest.
	NegativePermanent Property = "negative-permanent"
	// LostUnits: at rest S - counter - units answered sold > 0. A deduct that
	// stayed unknown after the audit counts as not sold: nobody can show that
	// a buyer owns the unit, and nobody can buy it. An unknown restock counts
	// as not applied.
	LostUnits Property = "lost-units"
	// PhantomUnits: at rest counter + units answered sold > S, unknown
	// restocks counted as applied.
	PhantomUnits Property = "phantom-units"
	// DoubleDeduct: one request took its quantity more than once.
	DoubleDeduct Property = "double-deduct"
	// DoubleSale: one request, or one buyer under a one-per-buyer limit, got
	// its units twice.
	DoubleSale Property = "double-sale"
	// OrderMismatch: at rest the durable orders differ from the units answered
	// sold. Unknowns are settled from the orders before, so they never differ.
	OrderMismatch Property = "order-mismatch"
	// FalseSoldOut: answered sold-out although no linearization leaves fewer
	// than qty units at any point of the operation's interval. Unknown deducts
	// count as possibly applied, unknown restocks as possibly not.
	FalseSoldOut Property = "false-sold-out"
	// NonLinearizable: the history is not linearizable for the stock model.
	NonLinearizable Property = "non-linearizable"
	// Unsold: at rest units are left although operations that ended busy asked
	// for them. A cost, not a safety law.
	Unsold Property = "unsold"
	// Stuck: after faults healed and leases are over, a probe operation cannot
	// get sold or sold-out.
	Stuck Property = "stuck"
)

// PropertyInfo says in words when a property is broken.
type PropertyInfo struct {
	ID         Property
	Letter     string // one letter for compact tables
	BrokenWhen string
	Unit       string // of the amount
}

var properties = []PropertyInfo{
	{Oversell, "O", "units answered sold exceed initial + restocked", "units sold too many"},
	{NegativeTransient, "T", "the stored counter is below zero at some moment", "lowest counter"},
	{NegativePermanent, "N", "the stored counter is below zero at rest", "counter at rest"},
	{LostUnits, "L", "units nobody bought and nobody can buy", "units lost"},
	{PhantomUnits, "P", "the counter promises units that do not exist", "units too many"},
	{DoubleDeduct, "D", "one request took its quantity more than once", "units taken too many"},
	{DoubleSale, "S", "one request, or one limited buyer, got its units twice", "sales too many"},
	{OrderMismatch, "M", "durable orders differ from units answered sold", "orders minus sold"},
	{FalseSoldOut, "F", "answered sold-out while enough units were there all the time", "operations"},
	{NonLinearizable, "X", "the answers fit no sequential order", "histories"},
	{Unsold, "U", "units are left although busy answers asked for them", "units left"},
	{Stuck, "K", "after recovery a probe gets neither sold nor sold-out", "probes"},
}

// Properties lists every property in the order of the design.
func Properties() []PropertyInfo { return append([]PropertyInfo(nil), properties...) }

// Info describes p; ok is false for an identifier that does not exist.
func (p Property) Info() (info PropertyInfo, ok bool) {
	for _, i := range properties {
		if i.ID == p {
			return i, true
		}
	}
	return PropertyInfo{}, false
}

// Violation is a property a run broke, and by how much.
type Violation struct {
	Property Property
	Amount   int64  // in the unit of PropertyInfo
	Detail   string // one sentence in plain words
}

func (v Violation) String() string {
	return fmt.Sprintf("%s=%d (%s)", v.Property, v.Amount, v.Detail)
}
