// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The locale "C" for one thread, for libraries whose results depend on the locale of the thread that calls them.
#pragma once

#include <hocket/core/config.hpp>

#include <locale.h>

HOCKET_BEGIN_NAMESPACE
namespace platform {

/// Gives the thread the locale "C" for characters until it is destroyed, by the same thread. Bytes of names then stay as
/// they are; a locale with UTF-8 may compose letters and accents, so that two names become one. Changes nothing if the
/// locale can't be made, which needs no memory with glibc.
class plain_locale {
 public:
  plain_locale() noexcept : plain_(::newlocale(LC_CTYPE_MASK, "C", locale_t{})) {
    if (plain_ != locale_t{}) before_ = ::uselocale(plain_);
  }
  plain_locale(const plain_locale&) = delete;
  plain_locale& operator=(const plain_locale&) = delete;
  ~plain_locale() {
    if (plain_ == locale_t{}) return;
    ::uselocale(before_);
    ::freelocale(plain_);
  }

 private:
  locale_t plain_, before_{};
};

}  // namespace platform
HOCKET_END_NAMESPACE
