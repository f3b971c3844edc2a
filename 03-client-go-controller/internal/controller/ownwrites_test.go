package controller

import (
	"testing"

	"k8s.io/client-go/tools/cache"
)

// synced are stores that have seen everything up to the given resource versions, by kind.
func synced(versions map[string]string) map[string]cache.Store {
	stores := map[string]cache.Store{}
	for kind := range versions {
		stores[kind] = &cache.FakeCustomStore{LastStoreSyncResourceVersionFunc: func() string { return versions[kind] }}
	}
	return stores
}

func TestOwnWritesAreSeenWhenTheCachesHaveThem(t *testing.T) {
	type versions = map[string]string
	for name, test := range map[string]struct {
		written, caches versions
		seen            bool
	}{
		"nothing written":                    {nil, versions{"MyWeb": "1"}, true},
		"the cache is behind":                {versions{"MyWeb": "11"}, versions{"MyWeb": "10"}, false},
		"the cache has it":                   {versions{"MyWeb": "11"}, versions{"MyWeb": "11"}, true},
		"the cache has more":                 {versions{"MyWeb": "11"}, versions{"MyWeb": "12"}, true},
		"a version with one more digit":      {versions{"MyWeb": "10"}, versions{"MyWeb": "9"}, false},
		"one digit less":                     {versions{"MyWeb": "9"}, versions{"MyWeb": "10"}, true},
		"one of two caches is behind":        {versions{"MyWeb": "5", "Service": "6"}, versions{"MyWeb": "9", "Service": "5"}, false},
		"both caches have it":                {versions{"MyWeb": "5", "Service": "6"}, versions{"MyWeb": "9", "Service": "6"}, true},
		"versions of a server without order": {versions{"MyWeb": "abc"}, versions{"MyWeb": "abb"}, true},
		"a cache that says nothing":          {versions{"MyWeb": "5"}, versions{"MyWeb": ""}, true},
	} {
		t.Run(name, func(t *testing.T) {
			site := cache.NewObjectName("default", "site")
			w := newOwnWrites(synced(test.caches))
			for kind, version := range test.written {
				w.add(site, kind, version)
			}
			if got := w.seen(site); got != test.seen {
				t.Errorf("seen: %v, want %v", got, test.seen)
			}
			if !w.seen(cache.NewObjectName("default", "other")) {
				t.Error("another MyWeb waits for what was written for this one")
			}
			if left := len(w.written) > 0; left == test.seen {
				t.Errorf("something is still remembered: %v", left)
			}
		})
	}
}

func TestOnlyTheLastWriteOfAKindCounts(t *testing.T) {
	site := cache.NewObjectName("default", "site")
	caches := map[string]string{"MyWeb": "5"}
	w := newOwnWrites(synced(caches))
	w.add(site, "MyWeb", "5")
	w.add(site, "MyWeb", "7")
	if w.seen(site) {
		t.Error("the first write is there, the second one is not")
	}
	caches["MyWeb"] = "7"
	if !w.seen(site) {
		t.Error("both writes are there")
	}
}
