// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The begin of each picture of the report: its size, and its colours for light and for dark pages.
#pragma once

#include <string>

namespace gpt {

/// Returns the root of a picture and its style sheet. The picture is `width` pixels wide, or less in a narrower window.
/// The rules apply only inside these pictures, also if a page of HTML contains them.
inline std::string begin_picture(int width, int height, const std::string& label) {
  const std::string wide = std::to_string(width), high = std::to_string(height);
  return "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"gpt\" width=\"" + wide + "\" height=\"" + high +
         "\" viewBox=\"0 0 " + wide + ' ' + high + "\" role=\"img\" aria-label=\"" + label +
         "\" font-family=\"sans-serif\" font-size=\"13\">\n"
         R"(<style>
.gpt{max-width:100%;height:auto;color-scheme:light dark;background:#ffffff;fill:#222222}
.gpt .page{fill:#ffffff}
.gpt .grid{stroke:#dddddd}
.gpt .training{stroke:#14467f}
.gpt .held-out{fill:#b35f00;stroke:#b35f00}
.gpt .bigram{stroke:#c0392b}
.gpt .warning{fill:#c0392b}
.gpt .stored{fill:#14467f}
.gpt .peak{fill:#b4cfec}
.gpt .formula{stroke:#c77700}
@media (prefers-color-scheme:dark){
.gpt{background:#14181f;fill:#e5e7eb}
.gpt .page{fill:#14181f}
.gpt .grid{stroke:#39414d}
.gpt .training{stroke:#7fb2f0}
.gpt .held-out{fill:#ffb454;stroke:#ffb454}
.gpt .bigram{stroke:#ff9d94}
.gpt .warning{fill:#ff9d94}
.gpt .stored{fill:#7fb2f0}
.gpt .peak{fill:#2f5078}
.gpt .formula{stroke:#ffb454}
}
</style>
<rect class="page" width=")" +
         wide + "\" height=\"" + high + "\"/>\n";
}

}  // namespace gpt
