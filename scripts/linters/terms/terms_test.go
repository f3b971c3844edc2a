package terms

import (
	"testing"

	"golang.org/x/tools/go/analysis/analysistest"
)

// The comments in the folders of testdata state which report is expected on which line.
func TestAnalyzer(t *testing.T) {
	analysistest.Run(t, analysistest.TestData(), Analyzer, "words")
}
