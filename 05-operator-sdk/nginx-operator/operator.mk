# The targets that are the same in each operator of this chapter, by the names that the scaffold gives them. The Makefile,
# which includes this file, has the operator's settings, and targets that only this operator has.
# `make sync` of the workshop copies this file from memcached-operator.

IMG ?= $(IMAGE_TAG_BASE):v$(VERSION)
# CHANNELS and BUNDLE_IMG are the channels and the image of the bundle for OLM.
CHANNELS ?= alpha
BUNDLE_IMG ?= $(IMAGE_TAG_BASE)-bundle:v$(VERSION)
CONTAINER_TOOL ?= docker

export CGO_ENABLED := 0
export GOWORK := off
# Tools come from the pinned module of the workshop around this folder. Elsewhere they must be in PATH.
export PATH := $(CURDIR)/../../bin:$(PATH)
WORKSHOP := ../../scripts/workshop

SHELL = /usr/bin/env bash -o pipefail
.SHELLFLAGS = -ec
.DEFAULT_GOAL := help

##@ General

.PHONY: help
help: ## Display this help.
	@awk 'BEGIN {FS = ":.*##"; print "Usage:\n  make <target>"} /^[a-zA-Z_0-9-]+:.*?##/ { printf "  %-20s %s\n", $$1, $$2 } /^##@/ { printf "\n%s\n", substr($$0, 5) }' $(MAKEFILE_LIST)

##@ Development

.PHONY: manifests
manifests: controller-gen ## Generate CRDs, roles and webhook configurations from the markers.
	controller-gen crd paths=./api/... output:crd:artifacts:config=config/crd/bases
	controller-gen rbac:roleName=manager-role paths=./internal/controller/... output:rbac:dir=config/rbac
	$(if $(WEBHOOKS),controller-gen webhook rbac:roleName=webhook-certificate-role paths=./internal/webhook/... output:webhook:dir=config/webhook output:rbac:dir=config/webhook)

.PHONY: generate
generate: controller-gen ## Generate deep copies.
	controller-gen object:headerFile=hack/boilerplate.go.txt paths=./api/...

.PHONY: fmt
fmt: ## Run go fmt against code.
	go fmt ./...

.PHONY: vet
vet: ## Run go vet against code.
	go vet ./...

.PHONY: test
test: ## Run tests. It generates nothing: `make verify` says when files are stale.
	go test $$(go list ./... | grep -v /e2e)

.PHONY: test-e2e
test-e2e: ## Test the operator end to end on kind, from image to removal (needs Docker).
	./kind.sh

.PHONY: kind
kind: test-e2e ## The same, by the name that all chapters have.

.PHONY: verify
verify: controller-gen kustomize operator-sdk ## Check format and that all generated files are fresh.
	@test -z "$$(gofmt -l .)" || { echo "gofmt would change:"; gofmt -l .; exit 1; }
	go mod tidy -diff
	@tmp=$$(mktemp -d) && trap 'rm -rf "$$tmp"' EXIT && cp -R . "$$tmp/copy" && \
	$(MAKE) --no-print-directory -s -C "$$tmp/copy" generate bundle PATH="$(PATH)" >"$$tmp/out" && \
	{ diff -r -x bin -x dist -I createdAt: . "$$tmp/copy" || { echo "stale: run make generate bundle, and look at the difference" >&2; false; }; } && cat "$$tmp/out" && echo "generated files are fresh"

##@ Build

.PHONY: build
build: manifests generate fmt vet ## Build manager binary.
	go build -trimpath -o bin/manager ./cmd

.PHONY: run
run: manifests generate fmt vet ## Run the operator from your host, without webhooks.
	$(if $(WEBHOOKS),ENABLE_WEBHOOKS=false )go run ./cmd

.PHONY: docker-build
docker-build: ## Build docker images; GOARCH=arm64 for another processor.
	@rm -rf dist/image && mkdir -p dist/image
	GOOS=linux GOARCH=$${GOARCH:-$$($(CONTAINER_TOOL) version -f '{{.Server.Arch}}')} go build -trimpath -ldflags=-s -o dist/image/manager ./cmd
	$(CONTAINER_TOOL) build -t $(IMG) -f Dockerfile dist/image

.PHONY: docker-push
docker-push: ## Push docker images.
	$(CONTAINER_TOOL) push $(IMG)

.PHONY: build-installer
build-installer: manifests generate kustomize ## Generate dist/install.yaml, one file with everything.
	mkdir -p dist
	$(call render,default) >dist/install.yaml

##@ Deployment

ignore-not-found ?= false
# render prints a folder of config/ with the images. The scaffold lets `kustomize edit` write the
# image into config/manager/kustomization.yaml, which leaves every deploy as a change in the working tree.
render = kustomize build config/$(1) | sed 's|mage: controller:latest$$|mage: $(IMG)|$(MORE_IMAGES)'

.PHONY: install
install: manifests kustomize ## Install CRDs into the cluster of KUBECONFIG.
	kustomize build config/crd | kubectl apply -f -

.PHONY: uninstall
uninstall: kustomize ## Uninstall CRDs, and so all their objects. ignore-not-found=true skips missing objects.
	$(unused)
	kustomize build config/crd | kubectl delete --ignore-not-found=$(ignore-not-found) -f -

.PHONY: deploy
deploy: manifests kustomize ## Deploy the operator. CONFIG=one-namespace, … is another way.
	$(call render,$(or $(CONFIG),default)) | kubectl apply -f -

.PHONY: undeploy
undeploy: kustomize ## Undeploy the operator and its CRDs, and so all their objects.
	$(unused)
	@# The namespace takes its objects along: some are gone before it is their turn.
	$(call render,$(or $(CONFIG),default)) | kubectl delete --ignore-not-found -f -

##@ Bundle

.PHONY: bundle
bundle: manifests kustomize operator-sdk ## Generate the bundle for OLM, then validate it.
	operator-sdk generate kustomize manifests -q
	rm -rf bundle # manifests of objects that are gone would stay
	$(call render,manifests) | operator-sdk generate bundle -q --overwrite --version $(VERSION) --channels $(CHANNELS)
	operator-sdk bundle validate ./bundle --select-optional suite=operatorframework

.PHONY: bundle-build
bundle-build: ## Build the bundle's image.
	$(CONTAINER_TOOL) build -f bundle.Dockerfile -t $(BUNDLE_IMG) .

.PHONY: bundle-push
bundle-push: ## Push the bundle's image.
	$(CONTAINER_TOOL) push $(BUNDLE_IMG)

##@ Tools

.PHONY: controller-gen kustomize operator-sdk
controller-gen kustomize operator-sdk:
	@if test -x $(WORKSHOP); then $(WORKSHOP) tools $@; else $(call needed,$@); fi
needed = command -v $(1) >/dev/null || { echo "$(1) is not in PATH: outside the workshop, install it (its scripts/ have it)" >&2; exit 1; }
