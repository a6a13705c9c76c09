package schemes

import "stockproof/model"

// sqlConditionalGuarantees: it breaks nothing but what a database that forgets commits, or a preload that runs again, breaks of everybody.
var sqlConditionalGuarantees = Guarantees{[]Weakness{
	{Fault: "postgres-restart(off)", Workloads: []string{"restock"}, Breaks: []model.Property{model.LostUnits, model.FalseSoldOut}, World: "explore",
		Why: "commits that were acknowledged are lost"},
	{Fault: "postgres-restart(off)", Breaks: []model.Property{model.Oversell, model.PhantomUnits, model.OrderMismatch, model.NonLinearizable}, World: "explore",
		Why: "commits that were acknowledged are lost"},
	{Fault: "stock-reloaded", Workloads: []string{"restock"}, Breaks: []model.Property{model.LostUnits, model.FalseSoldOut}, World: "explore",
		Why: "the preload puts what was sold on sale again"},
	{Fault: "stock-reloaded", Breaks: []model.Property{model.Oversell, model.PhantomUnits, model.NonLinearizable}, World: "explore",
		Why: "the preload puts what was sold on sale again"},
}}
