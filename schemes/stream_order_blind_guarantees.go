package schemes

import "stockproof/model"

var streamOrderBlindGuarantees = Guarantees{[]Weakness{
	{Fault: "client-crash", Breaks: []model.Property{model.DoubleSale, model.OrderMismatch},
		Why: "the consumer dies between order and acknowledgement, and the message comes again"},
	{Fault: "request-lost", Retries: "off", Breaks: []model.Property{model.DoubleSale, model.OrderMismatch},
		Why: "the acknowledgement does not arrive, and the message comes again"},
	{Fault: "reply-lost", Breaks: []model.Property{model.DoubleSale, model.OrderMismatch},
		Why: "the consumer does not learn that its order is written, and the message comes again"},
	{Fault: "reply-lost", Retries: "default", Breaks: []model.Property{model.LostUnits, model.FalseSoldOut, model.NonLinearizable},
		Why: "go-redis sends the script again: two deductions, and two messages under one request id"},
	{Fault: "reply-lost", Workloads: []string{"mixed"}, Retries: "default", Breaks: []model.Property{model.DoubleDeduct},
		Why: "go-redis sends the script again: two deductions, and two messages under one request id"},
	{Fault: "reply-lost", Workloads: []string{"restock"}, Retries: "default", Breaks: []model.Property{model.PhantomUnits},
		Why: "go-redis sends the script again: two deductions, and two messages under one request id"},
	{Fault: "reply-lost", Workloads: []string{"unit", "restock"}, Retries: "default", Breaks: []model.Property{model.DoubleDeduct}, World: "explore",
		Why: "go-redis sends the script again: two deductions, and two messages under one request id"},
	{Fault: "reply-lost", Workloads: []string{"restock"}, Retries: "default", Breaks: []model.Property{model.Oversell}, World: "explore",
		Why: "go-redis sends the script again: two deductions, and two messages under one request id"},
	{Fault: "request-delayed", Breaks: []model.Property{model.DoubleSale, model.OrderMismatch},
		Why: "the consumer gives up an order that is written all the same, and the message comes again"},
	{Fault: "request-delayed", Retries: "default", Breaks: []model.Property{model.LostUnits, model.DoubleDeduct, model.FalseSoldOut, model.NonLinearizable},
		Why: "go-redis sends the script again: two deductions, and two messages under one request id"},
	{Fault: "request-delayed", Workloads: []string{"restock"}, Retries: "default", Breaks: []model.Property{model.Oversell, model.PhantomUnits},
		Why: "go-redis sends the script again: two deductions, and two messages under one request id"},
	{Fault: "duplicate-request", Breaks: []model.Property{model.DoubleDeduct, model.DoubleSale},
		Why: "the second submission is a purchase of its own"},
	{Fault: "store-loses", Breaks: []model.Property{model.Oversell, model.PhantomUnits, model.DoubleSale, model.OrderMismatch, model.NonLinearizable},
		Why: "Redis forgets the acknowledgement, and messages as well as the counter"},
	{Fault: "store-loses", Workloads: []string{"restock"}, Breaks: []model.Property{model.LostUnits, model.FalseSoldOut},
		Why: "Redis forgets the acknowledgement, and messages as well as the counter"},
}}
