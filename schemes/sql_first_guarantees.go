package schemes

import "stockproof/model"

// What sql-first promises is everything.
var sqlFirstGuarantees = Guarantees{[]Weakness{
	{Fault: "postgres-restart(off)", Workloads: []string{"restock"}, Breaks: []model.Property{model.LostUnits, model.FalseSoldOut}, World: "explore",
		Why: "commits that were acknowledged are lost"},
	{Fault: "postgres-restart(off)", Breaks: []model.Property{model.Oversell, model.PhantomUnits, model.OrderMismatch, model.NonLinearizable}, World: "explore",
		Why: "commits that were acknowledged are lost"},
}}
