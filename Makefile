# The face of the workshop. `make help` lists the verbs.
# CH=03 narrows a verb to one chapter; any unique beginning of a folder's name will do.
MAKEFLAGS += --no-print-directory
WORKSHOP := scripts/workshop
DEMO := 04-controller-runtime

.DEFAULT_GOAL := help
.PHONY: help doctor up down status shell demo page test verify sync kind-up kind-down kind-test \
	compare conformance crash faults mutants benchmark lab tools tools-envtest

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: ## See it work: a cluster, an operator, a page that becomes running children
	@$(WORKSHOP) demo $(DEMO)

up: ## Start the local cluster (no Docker needed), or repair it
	@$(WORKSHOP) up

status: ## Say what of the local cluster runs and where its files are
	@$(WORKSHOP) status

shell: ## Open a shell whose kubectl talks to the local cluster
	@$(WORKSHOP) shell

down: ## Remove the local cluster
	@$(WORKSHOP) down

page: ## Play a chapter's page: make page CH=01
	@$(WORKSHOP) page --ch '$(CH)'

test: ## Run the tests of all chapters, or of one: make test CH=01
	@$(WORKSHOP) test --ch '$(CH)'

verify: ## Check everything that must be true: pages, generated files, versions, machinery
	@$(WORKSHOP) verify --ch '$(CH)'

sync: ## Distribute what chapters share, record what pages execute
	@$(WORKSHOP) sync

doctor: ## Look for what may go wrong on this machine
	@$(WORKSHOP) doctor

kind-up: ## Create the kind cluster (needs Docker)
	@bash -c 'set -euo pipefail; . scripts/kind-lib.sh; kind_up; \
	printf "\nTo use it in this terminal:\n\nexport KUBECONFIG=%q\nexport PATH=%q:\"\$$PATH\"\n" "$$KUBECONFIG" "$$root/bin"'

kind-down: ## Delete the kind cluster
	@bash -c 'set -euo pipefail; . scripts/kind-lib.sh; kind_down'

kind-test: ## Walk the chapters on kind with real containers: make kind-test CH=04
	@$(WORKSHOP) kind-test --ch '$(CH)'

# The lab. IMPL=03 narrows it to an operator, IMPL=name=path/to/binary is yours; RUN=… narrows it to checks.
compare: ## Examine and measure the operators side by side: out/compare.html
	@$(WORKSHOP) lab compare --impl '$(IMPL)'

conformance: ## Check the 14 behaviours of an operator: make conformance IMPL=03
	@$(WORKSHOP) lab conformance --impl '$(IMPL)' --run '$(RUN)'

crash: ## Kill an operator after each of its writes, in every combination: make crash IMPL=03
	@$(WORKSHOP) lab crash --impl '$(IMPL)' --run '$(RUN)' --replay '$(REPLAY)'

faults: ## Disturb an operator in every way of the catalogue: make faults IMPL=03
	@$(WORKSHOP) lab faults --impl '$(IMPL)' --run '$(RUN)'

mutants: ## Plant known bugs in an operator, and see each of them caught
	@$(WORKSHOP) lab mutants --run '$(RUN)'

benchmark: ## Measure operators: make benchmark IMPL=03,04
	@$(WORKSHOP) lab benchmark --impl '$(IMPL)'

lab: ## Run the fast part of the lab, as CI does: make lab TIMES=10
	@$(WORKSHOP) lab fast --impl '$(IMPL)' --times '$(or $(TIMES),1)'

# Used by the machinery and by tests.
tools: ; @$(WORKSHOP) tools
tools-envtest: ; @$(WORKSHOP) tools envtest
