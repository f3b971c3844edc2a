package window

import (
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"example.com/operator-workshop/scripts/internal/testkit"
)

// request sends a request with a body, as a page of the window does.
func (f *fixture) request(t *testing.T, method, path, body string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, "http://"+f.host()+path, strings.NewReader(body))
	testkit.Must(t, err)
	request.Header.Set("Origin", "http://"+f.host())
	response, err := f.client.Do(request)
	testkit.Must(t, err)
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	testkit.Must(t, err)
	return response.StatusCode, strings.TrimSpace(string(answer))
}

func TestOnlyTheFilesOfABegunExerciseAreWritten(t *testing.T) {
	f := start(t)
	other := f.Course.All[0]
	other.ID = "04.2"
	f.Course.All = append(f.Course.All, other)
	for _, folder := range []string{"04-x/stages/1", "work/04-x"} {
		testkit.Write(t, filepath.Join(f.root, folder, "types.go"), "package main // types\n")
		testkit.Write(t, filepath.Join(f.root, folder, "specification.yaml"), "kind: Note\n")
	}
	testkit.Write(t, filepath.Join(f.root, "work/04-x/own.go"), "package main\n")
	f.enter(t)
	const noFile = "The exercise has no such file to edit."
	const wrong = `{"text":"package main // wrong\n","version":"`
	for _, step := range []struct{ method, path, body, want string }{
		{"GET", "/exercises/04.1/file", "", wrong},
		{"PUT", "/exercises/04.1/file?version=old", "lost", `"saved":false`},
		{"POST", "/exercises/04.1/file/difference", "package main // mine\n", `-package main // wrong\n+package main // mine`},
		{"GET", "/exercises/04.2/file", "", "The exercise is not begun."},
		{"PUT", "/exercises/04.2/file?version=", "lost", "The exercise is not begun."},
		{"PUT", "/exercises/04.3/file?version=", "lost", "there is no exercise"},
		{"GET", "/exercises/04.1/file?name=types.go", "", "package main // types"},
		{"PUT", "/exercises/04.1/file?name=types.go&version=old", "lost", `"saved":false`},
		{"GET", "/exercises/04.1/file?name=specification.yaml", "", noFile},
		{"PUT", "/exercises/04.1/file?name=own.go&version=", "lost", noFile},
		{"PUT", "/exercises/04.1/file?name=../.state.yaml&version=", "lost", noFile},
		{"POST", "/exercises/04.1/file/difference?name=../../README.md", "lost", noFile},
		{"PUT", "/exercises/04.1/file?version=", strings.Repeat("x", mostOfText+1), "too large"},
	} {
		if _, got := f.request(t, step.method, step.path, step.body); !strings.Contains(got, step.want) {
			t.Errorf("%s %s: %s", step.method, step.path, got)
		}
	}
	file := filepath.Join(f.root, "work/04-x/main.go")
	if is := testkit.Read(t, file); is != "package main // wrong\n" {
		t.Fatalf("the file is %q", is)
	}
	_, read := f.request(t, "GET", "/exercises/04.1/file", "")
	version := strings.TrimSuffix(strings.TrimPrefix(read, wrong), `"}`)
	if code, _ := f.request(t, "GET", "/exercises/04.1/file?version="+version, ""); code != http.StatusNoContent {
		t.Errorf("the known version: %d", code)
	}
	if _, got := f.request(t, "PUT", "/exercises/04.1/file?version="+version, "new"); !strings.Contains(got, `"saved":true`) {
		t.Errorf("a write: %s", got)
	}
	if is := testkit.Read(t, file); is != "new" {
		t.Errorf("the file is %q", is)
	}
}

func TestAGoFileIsFormatted(t *testing.T) {
	for _, test := range []struct{ name, text, want string }{
		{"main.go", "package  main\nvar x=1", "package main\n\nvar x = 1\n"},
		{"main.go", "package  main\r\nvar x=1\r\n", "package main\r\n\r\nvar x = 1\r\n"},
		{"main.go", "package  main\nvar x=", "package  main\nvar x="},
		{"values.yaml", "a:   1\n", "a:   1\n"},
	} {
		if got := formatted(test.name, test.text); got != test.want {
			t.Errorf("%s %q becomes %q, want %q", test.name, test.text, got, test.want)
		}
	}
}
