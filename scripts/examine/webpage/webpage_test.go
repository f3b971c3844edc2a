package webpage

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestWrite(t *testing.T) {
	file := filepath.Join(t.TempDir(), "page.html")
	markdown := "# A page\n\n| check | verdict |\n| --- | --- |\n| a | <script>alert(1)</script> |\n\n<div>\n\nno <name>\n\n" +
		"<details><summary>2 passed</summary>\n\n- **passed**: a\n\n</details>\n"
	if err := Write(file, "<a title>", markdown); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	page := string(data)
	for _, want := range []string{"<title>&lt;a title&gt;</title>", `<h1 id="a-page">A page</h1>`, "<th>check</th>", "<td>a</td>",
		"<td>&lt;script&gt;alert(1)&lt;/script&gt;</td>", "<p>&lt;div&gt;\n</p>", "<p>no &lt;name&gt;</p>",
		"<details><summary>2 passed</summary>\n<ul>\n<li><strong class=\"passed\">passed</strong>: a</li>\n</ul>\n</details>"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q:\n%s", want, page)
		}
	}
	if strings.Contains(page, "<script>") || strings.Contains(page, "<div>") {
		t.Errorf("HTML of a report is HTML of the page:\n%s", page)
	}
}
