# The targets of the workshop. `make help` lists them.
# CH=03 narrows a target to one chapter; any unique beginning of a folder's name will do.
MAKEFLAGS += --no-print-directory
WORKSHOP := scripts/workshop
override DEMO := 04-controller-runtime
# The variables that were typed after make. A variable of the environment, such as NAME in WSL or LANGUAGE, is not among them.
typed := $(foreach v,$(.VARIABLES),$(if $(findstring command,$(origin $v)),$v))
# Values are text: make expands no $(shell …) in a value, whether it was typed or comes from the environment, and does
# not hand it to another make. Recipes read "$$CH" from the environment, because an apostrophe in $(CH) would end a word
# of the shell.
MAKEOVERRIDES :=
$(foreach v,$(typed) BRIEF CHECK CODES FAST KIND OUTSIDE PAUSE PRESENT SOLUTION VERBOSE WATCH YES,\
$(if $(filter-out undefined,$(origin $v)),$(eval override export $v := $$(value $v))))
# bash cannot read files of a clone that Git for Windows has converted.
ifneq ($(filter-out 0,$(shell grep -c "$$(printf '\r')" scripts/workshop 2>/dev/null)),)
$(error The files have CRLF at the ends of lines. Commit or stash your changes, then: \
git config core.autocrlf false && git rm -rq --cached . && git reset -q --hard)
endif

.DEFAULT_GOAL := help
.PHONY: help doctor up down status shell watch demo open page test verify lint sync kind-up kind-down kind-test \
	bundle from-bundle serve-bundle exercise check hint solution goto reset progress bug exercises-verify \
	ready restore stages compare conformance crash faults mutants lab examine tools tools-envtest tools-gopls

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: ## See it work: a cluster, an operator, a web page that becomes running children
	@$(WORKSHOP) demo $(DEMO) $(if $(PAUSE),--pause)

open: ## Read, run and check in a browser: make open PRESENT=1; CHECK=1 runs its tests
	@$(WORKSHOP) open --port "$${PORT:-4180}" $(if $(CHECK),--check) $(if $(PRESENT),--present) \
	$(if $(filter ROOM,$(typed)),--room "$$ROOM") $(if $(filter NAME,$(typed)),--name "$$NAME")

up: ## Start the local cluster (no Docker needed), or repair it
	@$(WORKSHOP) up

status: ## Show what of the local cluster runs and where its files are
	@$(WORKSHOP) status

shell: ## Open a shell whose kubectl talks to the local cluster
	@$(WORKSHOP) shell

watch: ## See the loop as it happens: make watch BY=3-own; of your last check: make watch EX=04.3, with SOLUTION=1 beside ours
	@$(WORKSHOP) watch --by "$$BY" --ex "$$EX" $(if $(PAUSE),--pause) $(if $(SOLUTION),--solution)

down: ## Remove the local cluster, and the control plane that checks keep
	@$(WORKSHOP) down

page: ## Run a chapter page: make page CH=01 LANGUAGE=ja; with PAUSE=1, Enter runs each command
	@$(WORKSHOP) page --ch "$$CH" $(if $(filter LANGUAGE,$(typed)),--language "$$LANGUAGE") $(if $(PAUSE),--pause)

test: ## Run the tests of all chapters, or of one: make test CH=01
	@$(WORKSHOP) test --ch "$$CH"

# After a change of one page: make verify PAGE=01-crd/README.md
verify: ## Check pages, generated files, versions, copies, machinery
	@$(WORKSHOP) verify --ch "$$CH" --page "$$PAGE"

lint: ## Run the linters, on all modules or on a chapter: make lint CH=02
	@$(WORKSHOP) lint --ch "$$CH"

sync: ## Copy what chapters share, record what pages execute
	@$(WORKSHOP) sync

doctor: ## Check this machine for what the workshop needs; in one line: make doctor BRIEF=1
	@$(WORKSHOP) doctor $(if $(BRIEF),--brief)

ready: ## Prove that this machine is ready for a workshop; for an evening with 05: make ready CH=05
	@$(WORKSHOP) ready $(DEMO) --ch "$$CH" $(if $(CODES),--codes)

# A room without a network. KIND=1 adds the images of kind.
bundle: ## Pack all that works without a network: make bundle PLATFORMS=linux/amd64,darwin/arm64
	@$(WORKSHOP) pack --platforms "$$PLATFORMS" $(if $(KIND),--kind)

from-bundle: ## Install a bundle, without a network: make from-bundle FILE=path CODE=abcd-…
	@$(WORKSHOP) from-bundle --file "$$FILE" --code "$$CODE"

serve-bundle: ## Give bundles to a room: make serve-bundle ADDRESS=192.168.1.5:8400
	@$(WORKSHOP) serve-bundle --address "$$ADDRESS"

# Exercises. Your files are in work/, which is not committed; files are saved before they are overwritten.
exercise: ## Write an operator step by step: make exercise, or make exercise EX=04.3 LANGUAGE=ja
	@$(WORKSHOP) exercise --ex "$$EX" $(if $(filter LANGUAGE,$(typed)),--language "$$LANGUAGE") \
	$(if $(filter KIND,$(typed)),--kind "$$KIND") $(if $(filter SPEC,$(typed)),--spec "$$SPEC")

# ROOM=http://… NAME=… sends the verdict to the instructor, under the name that you choose; nothing is sent without it.
check: ## Let the lab judge what you wrote: make check, make check WATCH=1
	@$(WORKSHOP) check --ex "$$EX" $(if $(filter LANGUAGE,$(typed)),--language "$$LANGUAGE") $(if $(WATCH),--watch) $(if $(VERBOSE),--verbose) \
	$(if $(filter ROOM,$(typed)),--room "$$ROOM") $(if $(filter NAME,$(typed)),--name "$$NAME")

hint: ## Get a hint that fits your last failure, then more of it
	@$(WORKSHOP) hint --ex "$$EX" $(if $(filter LANGUAGE,$(typed)),--language "$$LANGUAGE")

solution: ## See what makes a solution of your files; nothing is written
	@$(WORKSHOP) solution --ex "$$EX" $(if $(YES),--yes)

goto: ## Catch up: make goto EX=04.5 begins it with everything before it solved
	@$(WORKSHOP) goto --ex "$$EX" $(if $(YES),--yes) $(if $(filter LANGUAGE,$(typed)),--language "$$LANGUAGE")

reset: ## Take the starter of an exercise again
	@$(WORKSHOP) reset --ex "$$EX"

restore: ## Bring back files that goto or reset saved: make restore lists them, make restore N=1
	@$(WORKSHOP) restore --n "$${N:-0}"

progress: ## See which exercises are done, the next one, and the minutes left
	@$(WORKSHOP) progress

bug: ## Find a bug from its symptom: make bug, make bug LEVEL=1, make bug N=7
	@$(WORKSHOP) bug --n "$${N:-0}" --level "$${LEVEL:-0}"

exercises-verify: ## Prove that every exercise can be solved: make exercises-verify CH=04
	@$(WORKSHOP) exercises-verify --ch "$$CH" $(if $(filter-out 0,$(FAST)),--fast)

tools-gopls: ## Compile Go's language server: completion and documentation in the editor of make open
	@$(WORKSHOP) tools gopls

# For instructors.
kind-up: ## Create the kind cluster (needs Docker)
	@bash -c 'set -euo pipefail; . scripts/kind-lib.sh; kind_up; \
	printf "\nTo use it in this terminal:\n\nexport KUBECONFIG=%q\nexport PATH=%q:\"\$$PATH\"\n" "$$KUBECONFIG" "$$root/bin"'

kind-down: ## Delete the kind cluster
	@bash -c 'set -euo pipefail; . scripts/kind-lib.sh; kind_down'

kind-test: ## Run the end-to-end tests on kind, with real containers: make kind-test CH=04
	@$(WORKSHOP) kind-test --ch "$$CH"

# The lab. IMPL=03 narrows it to an operator, IMPL=name=path/to/binary is yours; RUN=… narrows it to checks.
compare: ## Examine and measure the operators side by side: out/compare.html
	@$(WORKSHOP) lab compare --impl "$$IMPL" $(if $(filter-out 0,$(FAST)),--fast)

conformance: ## Check the 14 behaviours of an operator: make conformance IMPL=03
	@$(WORKSHOP) lab conformance --impl "$$IMPL" --run "$$RUN"

crash: ## Kill an operator after each of its writes, in every combination: make crash IMPL=03
	@$(WORKSHOP) lab crash --impl "$$IMPL" --run "$$RUN"

faults: ## Disturb an operator in every way of the catalogue: make faults IMPL=03
	@$(WORKSHOP) lab faults --impl "$$IMPL" --run "$$RUN"

mutants: ## Plant known bugs in an operator, and see each of them caught
	@$(WORKSHOP) lab mutants --run "$$RUN"

lab: ## Run the fast part of the lab, as CI does: make lab TIMES=10
	@$(WORKSHOP) lab fast --impl "$$IMPL" --times "$${TIMES:-1}"

stages: ## See each stage of a chapter demanded by a check of the lab: make stages CH=04
	@$(WORKSHOP) stages --ch "$$CH" --run "$$RUN"

# make would replace $KUBECONFIG, which the lab replaces.
override export ARGS := $(subst $$$$,$$,$(value ARGS))
override export ENV := $(subst $$$$,$$,$(value ENV))

# Any operator: scripts/examine/README.md explains each setting.
examine: ## Examine any operator: make examine PROGRAM=path CRD=folder SAMPLE=file
	@$(WORKSHOP) examine --program "$$PROGRAM" --crd "$$CRD" --sample "$$SAMPLE" --ready "$$READY" --args "$$ARGS" \
	--env "$$ENV" --role "$$ROLE" --namespace "$$NAMESPACE" --needs "$$NEEDS" --out "$$OUT" --run "$$RUN" \
	--webhooks "$$WEBHOOKS" --samples "$$SAMPLES" --period "$${PERIOD:-0}" --time "$${TIME:-0}" --baseline "$$BASELINE" \
	--against "$$AGAINST" --fail-on "$$FAIL_ON" --file "$$FILE" --manifest "$$MANIFEST" $(if $(filter-out 0,$(FAST)),--fast) \
	$(if $(filter-out 0,$(OUTSIDE)),--outside)

# Used by the machinery and by tests.
tools: ; @$(WORKSHOP) tools
tools-envtest: ; @$(WORKSHOP) tools envtest
