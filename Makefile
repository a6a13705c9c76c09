# One target for each thing a person does.
.DEFAULT_GOAL := help
.PHONY: explore verify compare bench test test-long replays lint image picture clean help bin/stockproof

help: ## say what there is
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-9s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

bin/stockproof:
	go build -o $@ ./cmd/stockproof

explore: ## judge the schemes of the notes by covering every interleaving; needs no server
	go run -tags nolive -gcflags=all=-l ./cmd/stockproof verify

verify: bin/stockproof ## the whole matrix, also on real servers
	bin/stockproof verify --scheme all --world all

compare: ## compare the checkers on two million random small histories
	STOCKPROOF_HISTORIES=2000000 go test ./model -run TestTheExactChecker -count=1 -v -timeout 30m

bench: ## measure: live scenarios, the proxy, explore, the checkers
	go test -run '^$$' -bench . -benchmem ./...

test: ## install what is missing, then lint and test on every backend
	scripts/setup.sh
	$(MAKE) --no-print-directory lint
	scripts/test.sh

test-long: ## also run the wider set of schemes live at every place
	go test -tags long -count 1 -timeout 60m -run 'TestLive' .

replays: ## replay every schedule 100 times on real servers and count what came out otherwise
	go test -tags replays -timeout 60m -count 1 -v -run TestSchedulesManyTimes .

lint: ## go vet and staticcheck
	go vet ./...
	go vet -tags nolive ./cmd/stockproof
	go vet -tags replays,long .
	go tool staticcheck ./...

image: ## build the local image for the container backend
	scripts/build-image.sh

picture: bin/stockproof ## take docs/report.png, the README's picture, of a real run
	scripts/picture.sh

clean: ## remove what builds and runs have written
	rm -rf bin out evidence/histories evidence/witnesses evidence/pictures evidence/report.html evidence/*.json
