package schemes

import "stockproof/model"

var luaLimitGuarantees = Guarantees{[]Weakness{
	{Fault: "client-crash", Breaks: []model.Property{model.LostUnits},
		Why: "the script took the unit, nobody told the buyer"},
	{Fault: "reply-lost", Workloads: []string{"restock"}, Retries: "default", Breaks: []model.Property{model.Oversell, model.NonLinearizable}, World: "explore",
		Why: "the unit is gone and the buyer unknown; the library's repeat is told that the buyer has bought; restocks are counted twice"},
	{Fault: "reply-lost", Breaks: []model.Property{model.LostUnits},
		Why: "the unit is gone and the buyer unknown; the library's repeat is told that the buyer has bought; restocks are counted twice"},
	{Fault: "reply-lost", Workloads: []string{"restock"}, Retries: "default", Breaks: []model.Property{model.PhantomUnits},
		Why: "the unit is gone and the buyer unknown; the library's repeat is told that the buyer has bought; restocks are counted twice"},
	{Fault: "request-delayed", Workloads: []string{"restock"}, Retries: "default", Breaks: []model.Property{model.Oversell, model.PhantomUnits, model.FalseSoldOut, model.NonLinearizable},
		Why: "the client gives up, the server executes the step later; restocks are counted twice"},
	{Fault: "request-delayed", Breaks: []model.Property{model.LostUnits},
		Why: "the client gives up, the server executes the step later; restocks are counted twice"},
	{Fault: "store-loses", Breaks: []model.Property{model.Oversell, model.PhantomUnits, model.NonLinearizable},
		Why: "Redis forgets what it had acknowledged"},
	{Fault: "store-loses", Workloads: []string{"restock"}, Breaks: []model.Property{model.LostUnits, model.FalseSoldOut},
		Why: "Redis forgets what it had acknowledged"},
}}
