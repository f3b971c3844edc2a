package controller

import (
	"testing"

	"k8s.io/client-go/tools/cache"
)

// synced are informers whose caches show everything up to the given resource versions, by kind.
func synced(versions map[string]string) map[string]cache.SharedIndexInformer {
	informers := map[string]cache.SharedIndexInformer{}
	for kind := range versions {
		informers[kind] = informer{store: &cache.FakeCustomStore{
			LastStoreSyncResourceVersionFunc: func() string { return versions[kind] }}}
	}
	return informers
}

type informer struct {
	cache.SharedIndexInformer
	store cache.Store
}

func (i informer) GetStore() cache.Store { return i.store }

func TestExpectationsAreSatisfiedWhenTheCachesShowTheWrites(t *testing.T) {
	type versions = map[string]string
	for name, test := range map[string]struct {
		written, caches versions
		satisfied       bool
	}{
		"nothing written":               {nil, versions{"MyWeb": "1"}, true},
		"the cache is behind":           {versions{"MyWeb": "11"}, versions{"MyWeb": "10"}, false},
		"the cache has it":              {versions{"MyWeb": "11"}, versions{"MyWeb": "11"}, true},
		"the cache has more":            {versions{"MyWeb": "11"}, versions{"MyWeb": "12"}, true},
		"a version with one more digit": {versions{"MyWeb": "10"}, versions{"MyWeb": "9"}, false},
		"one digit less":                {versions{"MyWeb": "9"}, versions{"MyWeb": "10"}, true},
		"one of two caches is behind": {
			versions{"MyWeb": "5", "Service": "6"}, versions{"MyWeb": "9", "Service": "5"}, false},
		"both caches have it": {
			versions{"MyWeb": "5", "Service": "6"}, versions{"MyWeb": "9", "Service": "6"}, true},
		"versions that cannot be compared": {versions{"MyWeb": "abc"}, versions{"MyWeb": "abb"}, true},
		"a cache without a version":        {versions{"MyWeb": "5"}, versions{"MyWeb": ""}, true},
	} {
		t.Run(name, func(t *testing.T) {
			site := cache.NewObjectName("default", "site")
			e := newExpectations(synced(test.caches))
			for kind, version := range test.written {
				e.expect(site, kind, version)
			}
			if got := e.satisfied(site); got != test.satisfied {
				t.Errorf("satisfied: %v, want %v", got, test.satisfied)
			}
			if !e.satisfied(cache.NewObjectName("default", "other")) {
				t.Error("another MyWeb waits for what was written for this one")
			}
			if left := len(e.written) > 0; left == test.satisfied {
				t.Errorf("writes are remembered: %v", left)
			}
		})
	}
}

func TestOnlyTheLastWriteOfAKindIsExpected(t *testing.T) {
	site := cache.NewObjectName("default", "site")
	caches := map[string]string{"MyWeb": "5"}
	e := newExpectations(synced(caches))
	e.expect(site, "MyWeb", "5")
	e.expect(site, "MyWeb", "7")
	if e.satisfied(site) {
		t.Error("only the first of two writes is shown")
	}
	caches["MyWeb"] = "7"
	if !e.satisfied(site) {
		t.Error("both writes are shown")
	}
}
