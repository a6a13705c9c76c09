package schemes

import "stockproof/model"

var outboxGuarantees = Guarantees{[]Weakness{
	{Fault: "client-crash", Breaks: []model.Property{model.DoubleSale, model.OrderMismatch},
		Why: "the relay dies between publishing and noting it, and publishes again"},
	{Fault: "request-lost", Breaks: []model.Property{model.DoubleSale, model.OrderMismatch},
		Why: "the note that a message was published does not arrive, and it is published again"},
	{Fault: "reply-lost", Breaks: []model.Property{model.DoubleSale, model.OrderMismatch},
		Why: "the relay does not learn that it has published, and publishes again"},
	{Fault: "request-delayed", Breaks: []model.Property{model.DoubleSale, model.OrderMismatch},
		Why: "the relay gives up a message that arrives all the same, and publishes again"},
	{Fault: "store-loses", Breaks: []model.Property{model.OrderMismatch},
		Why: "Redis forgets messages that the relay has noted as published"},
}}
