// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The part of LightGBM's C API that bench/peers/lightgbm.cpp uses, loaded from LightGBM's Python wheel, which has no
/// headers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <dlfcn.h>

namespace lightgbm {

/// The version of the wheel to which the declarations in this file belong: its C API does not report a version.
inline constexpr const char* version = "4.6.0";

/// A count of bytes.
using size_type = std::int32_t;

/// Combines `bytes` bytes of `from`, in elements of `element_bytes`, into `to`.
using reducer = void (*)(const char* from, char* to, int element_bytes, size_type bytes);

/// Combines block r of the `in` of all ranks into `out` on rank r. `starts` and `lengths` describe the block of each
/// rank, in bytes.
using reduce_scatter_hook = void (*)(char* in, size_type in_bytes, int element_bytes, const size_type* starts,
                                     const size_type* lengths, int ranks, char* out, size_type out_bytes,
                                     const reducer& reduce);

/// Gathers `in` of rank r as block r of `out` on all ranks. `in` may overlap `out`.
using all_gather_hook = void (*)(char* in, size_type in_bytes, const size_type* starts, const size_type* lengths,
                                 int ranks, char* out, size_type out_bytes);

/// The functions of the library. They return 0, or -1 after an error.
class library {
 public:
  using handle = void*;

  /// Loads the library at `path`, which must be in the folder of the wheel.
  explicit library(const std::string& path) {
    check_version(path);
    // It is never unloaded, because it has objects that are destroyed when a thread ends.
    loaded_ = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (loaded_ == nullptr) throw std::runtime_error(std::string("cannot load LightGBM: ") + ::dlerror());
    find(last_error_, "LGBM_GetLastError");
    find(log_to_, "LGBM_RegisterLogCallback");
    find(network_init_, "LGBM_NetworkInit");
    find(network_init_with_functions_, "LGBM_NetworkInitWithFunctions");
    find(network_free_, "LGBM_NetworkFree");
    find(dataset_create_, "LGBM_DatasetCreateFromMat");
    find(dataset_set_field_, "LGBM_DatasetSetField");
    find(dataset_free_, "LGBM_DatasetFree");
    find(booster_create_, "LGBM_BoosterCreate");
    find(booster_update_, "LGBM_BoosterUpdateOneIter");
    find(booster_save_, "LGBM_BoosterSaveModelToString");
    find(booster_free_, "LGBM_BoosterFree");
    check(log_to_(&ignore_log), "setting the log");
  }

  /// Connects the ranks by LightGBM's own sockets. `machines`: "address:port" of each rank, separated by commas.
  void connect_by_sockets(const std::string& machines, int port, int ranks) {
    constexpr int minutes = 2;
    check(network_init_(machines.c_str(), port, minutes, ranks), "connecting the ranks by LightGBM's sockets");
  }

  /// Lets LightGBM call the hooks. It stores them for each thread: all calls must be made by one thread.
  void connect_by_hooks(int ranks, int rank, reduce_scatter_hook reduce_scatter, all_gather_hook all_gather) {
    check(network_init_with_functions_(ranks, rank, reinterpret_cast<void*>(reduce_scatter),
                                       reinterpret_cast<void*>(all_gather)),
          "setting the hooks");
  }

  void disconnect() { check(network_free_(), "disconnecting the ranks"); }

  /// Makes a data set from the rows of this rank. Collective over the connected ranks.
  handle make_dataset(std::span<const float> rows, std::span<const float> labels, const std::string& parameters) {
    const auto count = static_cast<std::int32_t>(labels.size());
    const auto features = static_cast<std::int32_t>(rows.size() / labels.size());
    handle made = nullptr;
    check(dataset_create_(rows.data(), is_float, count, features, 1, parameters.c_str(), nullptr, &made),
          "making the data set");
    check(dataset_set_field_(made, "label", labels.data(), count, is_float), "setting the labels");
    return made;
  }

  /// Collective over the connected ranks, as is `train_one_tree`.
  handle make_booster(handle dataset, const std::string& parameters) {
    handle made = nullptr;
    check(booster_create_(dataset, parameters.c_str(), &made), "making the model");
    return made;
  }

  /// Returns false if no tree could be added.
  bool train_one_tree(handle booster) {
    int finished = 0;
    check(booster_update_(booster, &finished), "training");
    return finished == 0;
  }

  std::string model_text(handle booster) {
    std::int64_t length = 0;
    std::vector<char> text(1);
    for (int i = 0; i < 2; ++i) {  // the first call returns the length only
      text.resize(static_cast<std::size_t>(length) + 1);
      check(booster_save_(booster, 0, -1, 0, static_cast<std::int64_t>(text.size()), &length, text.data()),
            "writing the model");
    }
    return text.data();
  }

  void free_booster(handle booster) { check(booster_free_(booster), "destroying the model"); }
  void free_dataset(handle dataset) { check(dataset_free_(dataset), "destroying the data set"); }

 private:
  static constexpr int is_float = 0;  // C_API_DTYPE_FLOAT32

  static void ignore_log(const char*) {}

  static void check_version(const std::string& path) {
    const std::filesystem::path file = std::filesystem::path(path).parent_path().parent_path() / "VERSION.txt";
    std::string found;
    if (!(std::ifstream(file) >> found)) {
      throw std::runtime_error("cannot read " + file.string() + ": give the library in the folder of LightGBM's wheel");
    }
    if (found != version) {
      throw std::runtime_error("LightGBM " + found + " was found, but the calls are those of " + version);
    }
  }

  template <class Function>
  void find(Function& function, const char* name) {
    void* found = ::dlsym(loaded_, name);
    if (found == nullptr) throw std::runtime_error(std::string("LightGBM's library has no function ") + name);
    function = reinterpret_cast<Function>(found);
  }

  void check(int status, const char* what) const {
    if (status != 0) throw std::runtime_error(std::string(what) + " failed: LightGBM reports: " + last_error_());
  }

  void* loaded_ = nullptr;
  const char* (*last_error_)() = nullptr;
  int (*log_to_)(void (*)(const char*)) = nullptr;
  int (*network_init_)(const char* machines, int port, int minutes, int ranks) = nullptr;
  int (*network_init_with_functions_)(int ranks, int rank, void* reduce_scatter, void* all_gather) = nullptr;
  int (*network_free_)() = nullptr;
  int (*dataset_create_)(const void* rows, int type, std::int32_t count, std::int32_t features, int row_major,
                         const char* parameters, handle reference, handle* made) = nullptr;
  int (*dataset_set_field_)(handle, const char* name, const void* values, int count, int type) = nullptr;
  int (*dataset_free_)(handle) = nullptr;
  int (*booster_create_)(handle dataset, const char* parameters, handle* made) = nullptr;
  int (*booster_update_)(handle, int* finished) = nullptr;
  int (*booster_save_)(handle, int first, int count, int importance, std::int64_t size, std::int64_t* length,
                       char* text) = nullptr;
  int (*booster_free_)(handle) = nullptr;
};

}  // namespace lightgbm
