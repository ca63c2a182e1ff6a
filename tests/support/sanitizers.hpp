// Which sanitizer the tests are built with (clang's presets only).
#pragma once

namespace pyinject::test {

#if defined(__has_feature)
#if __has_feature(undefined_behavior_sanitizer)
// Its check of virtual tables opens a pipe, and without one reports every object as invalid.
inline constexpr bool kUndefinedBehaviorSanitizer = true;
#else
inline constexpr bool kUndefinedBehaviorSanitizer = false;
#endif
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
inline constexpr bool kSlowedBySanitizer = true;
#else
inline constexpr bool kSlowedBySanitizer = false;
#endif
#else
inline constexpr bool kUndefinedBehaviorSanitizer = false;
inline constexpr bool kSlowedBySanitizer = false;
#endif

}  // namespace pyinject::test
