/* libraries.h: the libraries, and arguments on PyTorch's stack */
#ifndef LIBSYSTEMS_LIBRARIES_H
#define LIBSYSTEMS_LIBRARIES_H

#include <cstring>
#include <dlfcn.h>
#include <stdexcept>
#include <string>
#include <torch/csrc/inductor/aoti_torch/c/shim.h>
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/tensor.h>

extern "C" {
#include "ops/flash_attention.h"
#include "ops/rmsnorm.h"
}

namespace {

using torch::stable::Tensor;

// pass arguments on PyTorch's stack
template <class T> T value(StableIValue word)
{
	T x;
	std::memcpy(&x, &word, sizeof x);
	return x;
}

Tensor tensor(StableIValue word)
{
	return Tensor(value<AtenTensorHandle>(word));
}

StableIValue word(const Tensor &x)
{
	AtenTensorHandle handle;
	TORCH_ERROR_CODE_CHECK(aoti_torch_new_tensor_handle(x.get(), &handle));
	StableIValue result = 0;
	std::memcpy(&result, &handle, sizeof handle);
	return result;
}

// load the libraries
[[noreturn]] void refuse(const std::string &text)
{
	throw std::runtime_error("libsystems: " + text);
}

void *open_beside(const char *name)
{
	Dl_info self;
	dladdr(reinterpret_cast<void *>(&open_beside), &self);
	std::string path = self.dli_fname;
	path.erase(path.rfind('/') + 1);
	void *handle = dlopen((path + name).c_str(), RTLD_NOW | RTLD_LOCAL);
	if (!handle)
		refuse(dlerror());
	return handle;
}

struct Library {
	void *handle;
	explicit Library(const char *name) : handle(open_beside(name)) { }
	template <class F> void find(F *&function, const char *name) const
	{
		function = reinterpret_cast<F *>(dlsym(handle, name));
		if (!function)
			refuse(dlerror());
	}
};

struct Functions : Library {
	decltype(&flash_attention_forward) attention;
	decltype(&flash_attention_backward) attention_backward;
	decltype(&flash_attention_status) attention_status;
	decltype(&rmsnorm_forward) norm;
	decltype(&rmsnorm_backward) norm_backward;
	decltype(&rmsnorm_status) norm_status;
	explicit Functions(const char *name) : Library(name)
	{
		find(attention, "flash_attention_forward");
		find(attention_backward, "flash_attention_backward");
		find(attention_status, "flash_attention_status");
		find(norm, "rmsnorm_forward");
		find(norm_backward, "rmsnorm_backward");
		find(norm_status, "rmsnorm_status");
	}
};

const Functions &functions(bool in_double)
{
	if (in_double) {
		static const Functions doubles("libsystems64.so");
		return doubles;
	}
	static const Functions singles("libsystems.so");
	return singles;
}

}

#endif
