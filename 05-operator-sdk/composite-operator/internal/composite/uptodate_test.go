package composite

import (
	"testing"

	utiljson "k8s.io/apimachinery/pkg/util/json"
)

func TestIsUpToDate(t *testing.T) {
	for name, test := range map[string]struct {
		live, desired string
		want          bool
	}{
		"defaults were added":        {`{"a":1,"b":{"c":"x","d":2}}`, `{"b":{"c":"x"}}`, true},
		"a value differs":            {`{"b":{"c":"y"}}`, `{"b":{"c":"x"}}`, false},
		"a field is missing":         {`{"b":{}}`, `{"b":{"c":"x"}}`, false},
		"an empty text":              {`{"b":""}`, `{"b":""}`, true},
		"an element was added":       {`[{"name":"z"},{"name":"a","v":1,"w":2}]`, `[{"name":"a","v":1}]`, true},
		"a named element differs":    {`[{"name":"a","v":2}]`, `[{"name":"a","v":1}]`, false},
		"a named element is missing": {`[{"name":"b","v":1}]`, `[{"name":"a","v":1}]`, false},
		"another port":               {`[{"name":"http","port":8080}]`, `[{"name":"http","port":80}]`, false},
		"two mounts of one volume": {`[{"name":"p","mountPath":"/x"},{"name":"p","mountPath":"/y"}]`,
			`[{"name":"p","mountPath":"/y"}]`, true},
		"a list of texts":           {`["a","b"]`, `["a","b"]`, true},
		"a text was added":          {`["a","b"]`, `["a"]`, false},
		"an order that differs":     {`["b","a"]`, `["a","b"]`, false},
		"a list in place of a map":  {`[]`, `{"a":1}`, false},
		"a map in place of a list":  {`{}`, `["a"]`, false},
		"nothing in place of a map": {`null`, `{}`, true},
	} {
		var live, desired any
		if err := utiljson.Unmarshal([]byte(`{"v":`+test.live+`}`), &live); err != nil {
			t.Fatal(err)
		}
		if err := utiljson.Unmarshal([]byte(`{"v":`+test.desired+`}`), &desired); err != nil {
			t.Fatal(err)
		}
		if got := isUpToDate(live, desired); got != test.want {
			t.Errorf("%s: isUpToDate(%s, %s) is %v", name, test.live, test.desired, got)
		}
	}
}
