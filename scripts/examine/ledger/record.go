package ledger

import (
	"time"

	"example.com/operator-workshop/scripts/examine/loop"
	"example.com/operator-workshop/scripts/examine/wire"
)

// Copy passes a record of each delivered event and of each answered request to a function. Call it before the first
// request. The function must not block, and must not call the ledger.
func (l *Ledger) Copy(to func(loop.Record)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.copy = to
}

// IsCopied reports whether Copy was called.
func (l *Ledger) IsCopied() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.copy != nil
}

// record needs the lock.
func (l *Ledger) record(e *Entry, r loop.Record) {
	if l.copy != nil && !e.Unknown {
		l.copy(r)
	}
}

// Opened records that a watch is answered and continues.
func (l *Ledger) Opened(id int) {
	l.Change(id, func(e *Entry) { l.record(e, l.recordOf(e)) })
}

// Bypass numbers a note, or a request that does not pass the proxy, before the request is sent.
func (l *Ledger) Bypass(r loop.Record) loop.Record {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.copy != nil {
		l.order++
		r.N, r.Time = l.order, l.now()
	}
	return r
}

// Bypassed records a note, or a request that is answered. content is the object of the answer as JSON, if there is one.
func (l *Ledger) Bypassed(r loop.Record, content []byte) {
	l.Describe(content)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.copy != nil {
		l.copy(l.shown(r, r.Effect == string(Moved)))
	}
}

// ofEachNamespace is the ConfigMap that the cluster creates in each namespace.
const ofEachNamespace = "kube-root-ca.crt"

// Deliver enters events of a watch that its client gets now.
func (l *Ledger) Deliver(id int, events []wire.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	watch := l.entries[id-1-l.first]
	for _, event := range events {
		if event.Type == "BOOKMARK" {
			continue
		}
		l.order++
		r := loop.Record{Is: loop.Event, N: l.order, Time: l.now(), Type: event.Type,
			Group: watch.Group, Version: watch.Version, Resource: watch.Resource, Kind: event.Kind,
			Namespace: event.Namespace, Name: event.Name, UID: event.UID, ResourceVersion: event.ResourceVersion,
		}.With(watch.Peer)
		r = l.shown(r, event.Type == "MODIFIED")
		if !l.bounded && event.Name != ofEachNamespace {
			for _, namespace := range []string{"", event.Namespace} {
				l.events[delivery{watch.User, namespace, ""}] = r
				l.events[delivery{watch.User, namespace, watch.FullResource()}] = r
			}
		}
		l.record(watch, r)
	}
}

func (l *Ledger) recordOf(e *Entry) loop.Record {
	r := loop.Record{Is: loop.Request, N: e.N, Time: e.Start, Group: e.Group, Version: e.Version,
		Resource: e.Resource, Subresource: e.Subresource, Namespace: e.Namespace, Name: e.Name, UID: e.UID,
		ResourceVersion: e.ResourceVersion, Verb: e.Verb, Code: e.Code, Effect: string(e.Effect),
		Took: float64(e.Took) / float64(time.Millisecond), Open: e.Open, DryRun: e.DryRun,
	}.With(e.Peer)
	return l.shown(r, e.Effect == Moved)
}

// forget drops an entry, and skips dropped entries at the beginning.
func (l *Ledger) forget(id int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries[id-1-l.first] = nil
	for len(l.entries) > 0 && l.entries[0] == nil {
		l.entries, l.first = l.entries[1:], l.first+1
	}
}
