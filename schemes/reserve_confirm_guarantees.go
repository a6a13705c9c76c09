package schemes

import "stockproof/model"

var reserveConfirmGuarantees = Guarantees{[]Weakness{
	{Fault: "client-crash", Breaks: []model.Property{model.PhantomUnits, model.FalseSoldOut, model.NonLinearizable},
		Why: "who dies after the order leaves a reservation that the sweeper takes for unpaid; who dies before it has hidden the units until then"},
	{Fault: "client-crash", Breaks: []model.Property{model.Oversell}, World: "explore",
		Why: "who dies after the order leaves a reservation that the sweeper takes for unpaid; who dies before it has hidden the units until then"},
	{Fault: "client-pause", Breaks: []model.Property{model.PhantomUnits, model.NonLinearizable},
		Why: "the order comes after the sweeper has given the units back, and is honoured"},
	{Fault: "client-pause", Breaks: []model.Property{model.Oversell}, World: "explore",
		Why: "the order comes after the sweeper has given the units back, and is honoured"},
	{Fault: "request-lost", Breaks: []model.Property{model.FalseSoldOut, model.NonLinearizable},
		Why: "units that a request holds and will not order are hidden from others until they are given back"},
	{Fault: "request-lost", Retries: "off", Breaks: []model.Property{model.PhantomUnits},
		Why: "the confirm does not arrive, and the sweeper gives back what is sold; an order that does not arrive has hidden the units"},
	{Fault: "request-lost", Retries: "off", Breaks: []model.Property{model.Oversell}, World: "explore",
		Why: "the confirm does not arrive, and the sweeper gives back what is sold; an order that does not arrive has hidden the units"},
	{Fault: "reply-lost", Breaks: []model.Property{model.PhantomUnits, model.NonLinearizable},
		Why: "the buyer's process stops short of the confirm, and the sweeper gives back what is sold"},
	{Fault: "reply-lost", Retries: "off", Breaks: []model.Property{model.FalseSoldOut},
		Why: "units that a request holds and will not order are hidden from others until they are given back"},
	{Fault: "reply-lost", Breaks: []model.Property{model.Oversell}, World: "explore",
		Why: "the buyer's process stops short of the confirm, and the sweeper gives back what is sold"},
	{Fault: "request-delayed", Breaks: []model.Property{model.Oversell, model.PhantomUnits, model.FalseSoldOut, model.NonLinearizable},
		Why: "an order or a confirm that comes late finds the units given back"},
	{Fault: "duplicate-request", Breaks: []model.Property{model.FalseSoldOut, model.NonLinearizable},
		Why: "the submission that took the units is refused, and a later one has them: who came between was told sold out"},
	{Fault: "store-loses", Breaks: []model.Property{model.Oversell, model.PhantomUnits, model.NonLinearizable},
		Why: "Redis forgets reservations and deductions that it had acknowledged"},
	{Fault: "store-loses", Workloads: []string{"restock"}, Breaks: []model.Property{model.LostUnits, model.FalseSoldOut},
		Why: "Redis forgets reservations and deductions that it had acknowledged"},
}}
