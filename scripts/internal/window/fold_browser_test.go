package window

import (
	"testing"

	"github.com/chromedp/chromedp"
)

// On a small screen a long tree of objects leaves the actions of a user in sight, and each head of a column is whole.
func TestTheActionsOfAUserAreInSight(t *testing.T) {
	f := start(t)
	ctx := f.browser(t)
	do(t, ctx, chromedp.EmulateViewport(1280, 800), chromedp.Click("#tab-loop"))
	says(t, ctx, "#panel-loop .heads", "API server")
	var wrong string
	do(t, ctx, chromedp.Evaluate(`(() => {
		const tree = document.querySelector(".tree");
		for (let i = 0; i < 60; i++) tree.append(document.createElement("p"));
		for (const one of tree.querySelectorAll("p")) one.textContent = "an object";
		const title = document.querySelector(".side > :has(> .acts) h2").getBoundingClientRect();
		const bottom = document.querySelector("#panel-loop").getBoundingClientRect().bottom;
		const cut = [...document.querySelectorAll(".heads span")].filter((one) => one.scrollWidth > one.clientWidth + 1 ||
			getComputedStyle(one).textOverflow === "ellipsis").map((one) => one.textContent);
		return (title.bottom + 60 > bottom ? "the actions begin at " + title.top + " of " + bottom : "") + cut.join(", ");
	})()`, &wrong))
	if wrong != "" {
		t.Error(wrong)
	}
}
