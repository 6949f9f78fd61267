"""A text classifier whose training loop never touches Python.

A text is the bag of its words, each hashed to one of `buckets` rows of an embedding. The mean of
the rows goes through gelu and a linear layer to the logits of the classes:

    z = mean of the words' rows      h = gelu(z)      logits = h·W + b      loss = cross-entropy

Every formula and its gradient is a function of extensor.cython_api. They start no threads, so they
are called here from this module's own prange.
"""

import numpy as np

from cython.parallel cimport prange
from libc.math cimport log
from libc.stdint cimport int32_t, uint32_t, uint64_t
from libc.string cimport memset

from extensor.cython_api cimport (
    ex_adam_f32, ex_add_f32, ex_gelu_backward_f32, ex_gelu_f32, ex_gemm_f32, ex_softmax_f32,
)


cdef enum:
    MANY = 256      # texts that are worth a second thread: a batch takes 0.1 ms, less than waking one may


cdef inline uint64_t next_random(uint64_t* state) noexcept nogil:
    """xorshift64*: enough to shuffle texts."""
    state[0] ^= state[0] >> 12
    state[0] ^= state[0] << 25
    state[0] ^= state[0] >> 27
    return state[0] * <uint64_t> 2685821657736338717


cdef Py_ssize_t hash_words(const unsigned char* text, Py_ssize_t n, uint32_t buckets, int32_t* to) noexcept nogil:
    """The buckets of a text's words: runs of letters, in lower case, by their FNV-1a hash."""
    cdef Py_ssize_t i, words = 0, length = 0
    cdef uint32_t value = 2166136261
    cdef unsigned char c
    for i in range(n + 1):
        c = text[i] | 32 if i < n else 32
        if c >= 97 and c <= 122:
            value = (value ^ c) * <uint32_t> 16777619
            length += 1
        elif length:
            if length > 1:
                to[words] = value % buckets
                words += 1
            value = 2166136261
            length = 0
    return words


cdef struct Texts:                  # words of text i: words[starts[i]] … words[starts[i + 1] - 1]
    const int32_t* words
    const Py_ssize_t* starts


cdef class Classifier:
    """Classes of texts, learnt from examples.

    Parameters
    ----------
    classes, buckets, hidden : int
        How many classes, rows of the embedding, and columns of it.
    threads : int
        How many threads share the texts where there are many; the result does not depend on it.
    """
    cdef Py_ssize_t classes, buckets, hidden
    cdef int threads
    cdef uint64_t random
    cdef Py_ssize_t step
    # parameters, gradients and Adam's two states: embedding, W, b, one after the other
    cdef float[::1] params, grads, first, second

    def __init__(self, Py_ssize_t classes, Py_ssize_t buckets=8192, Py_ssize_t hidden=32, int threads=2, seed=1):
        cdef Py_ssize_t size = buckets * hidden + hidden * classes + classes
        self.classes, self.buckets, self.hidden, self.threads = classes, buckets, hidden, threads
        self.random, self.step = seed * 2 + 1, 0
        values = np.random.default_rng(seed).normal(0, 0.3, size).astype(np.float32)
        values[-classes:] = 0
        self.params = values
        self.grads, self.first, self.second = np.zeros((3, size), np.float32)

    cdef void forward(
        self, Texts texts, const Py_ssize_t* batch, Py_ssize_t size, float* z, float* h, float* logits,
    ) noexcept nogil:
        """Logits of a batch of texts; z and h are kept for the way back."""
        cdef Py_ssize_t i, hidden = self.hidden, classes = self.classes
        cdef const float* weight = &self.params[self.buckets * hidden]
        for i in prange(size, schedule="static", num_threads=self.threads, use_threads_if=size >= MANY):
            self.embed(texts, batch[i], z + i * hidden)
            ex_gelu_f32(z + i * hidden, h + i * hidden, hidden)
        ex_gemm_f32(size, classes, hidden, h, hidden, 1, weight, classes, 1, logits, classes, 1,
                    weight + hidden * classes, 0, 1)

    cdef void embed(self, Texts texts, Py_ssize_t text, float* z) noexcept nogil:
        """The mean of the rows of a text's words."""
        cdef Py_ssize_t w, j, start = texts.starts[text], count = texts.starts[text + 1] - start
        memset(z, 0, self.hidden * sizeof(float))
        for w in range(start, start + count):
            ex_add_f32(z, &self.params[texts.words[w] * self.hidden], z, self.hidden)
        for j in range(self.hidden):
            z[j] /= count if count else 1

    cdef double learn(
        self, Texts texts, const int32_t* labels, const Py_ssize_t* batch, Py_ssize_t size, float* scratch,
        double rate,
    ) noexcept nogil:
        """One step on a batch; the sum of the losses."""
        cdef Py_ssize_t hidden = self.hidden, classes = self.classes, i, j, w, words, start
        cdef float* z = scratch
        cdef float* h = z + size * hidden
        cdef float* grad_h = h + size * hidden
        cdef float* grad_z = grad_h + size * hidden
        cdef float* logits = grad_z + size * hidden
        cdef float* slope = logits + size * classes         # of the logits
        cdef const float* weight = &self.params[self.buckets * hidden]
        cdef float* grad_weight = &self.grads[self.buckets * hidden]
        cdef float* grad_bias = grad_weight + hidden * classes
        cdef float* row
        cdef double loss = 0
        self.forward(texts, batch, size, z, h, logits)
        ex_softmax_f32(logits, slope, size, classes)
        memset(&self.grads[0], 0, self.grads.shape[0] * sizeof(float))
        for i in range(size):               # cross-entropy: (softmax − one-hot)/size
            row = slope + i * classes
            loss -= log(row[labels[batch[i]]] + 1e-30)
            row[labels[batch[i]]] -= 1
            for j in range(classes):
                row[j] /= size
            ex_add_f32(grad_bias, row, grad_bias, classes)
        # the gradients of h·W: transposed matrices are the same memory with its strides exchanged
        ex_gemm_f32(hidden, classes, size, h, 1, hidden, slope, classes, 1, grad_weight, classes, 1, NULL, 0, 1)
        ex_gemm_f32(size, hidden, classes, slope, classes, 1, weight, 1, classes, grad_h, hidden, 1, NULL, 0, 1)
        ex_gelu_backward_f32(grad_h, z, grad_z, size * hidden)
        for i in range(size):
            start = texts.starts[batch[i]]
            words = texts.starts[batch[i] + 1] - start
            for j in range(hidden):
                grad_z[i * hidden + j] /= words if words else 1
            for w in range(start, start + words):
                row = &self.grads[texts.words[w] * hidden]
                ex_add_f32(row, grad_z + i * hidden, row, hidden)
        self.step += 1
        ex_adam_f32(&self.params[0], &self.grads[0], &self.first[0], &self.second[0], self.params.shape[0],
                    self.step, rate, 0.9, 0.999, 1e-8, 0.0)
        return loss

    def fit(self, texts, labels, *, Py_ssize_t epochs=10, Py_ssize_t batch=32, double rate=0.01):
        """Learn from texts and their classes; the mean loss of each epoch."""
        cdef Py_ssize_t n = len(texts), epoch, start, i, j, held
        if len(labels) != n or n == 0 or min(labels) < 0 or max(labels) >= self.classes:
            raise ValueError("fit: each text needs a class, 0 … classes − 1")
        words, starts = self.encode(texts)
        cdef const int32_t[::1] word_view = words, label_view = np.asarray(labels, np.int32)
        cdef const Py_ssize_t[::1] start_view = starts
        cdef Py_ssize_t[::1] order = np.arange(n)
        cdef float[::1] scratch = np.empty(batch * (4 * self.hidden + 2 * self.classes), np.float32)
        cdef double[::1] losses = np.zeros(epochs)
        cdef Texts all_texts
        all_texts.words, all_texts.starts = &word_view[0], &start_view[0]
        with nogil:
            for epoch in range(epochs):
                for i in range(n - 1, 0, -1):
                    j = <Py_ssize_t> (next_random(&self.random) % <uint64_t> (i + 1))
                    held = order[i]
                    order[i] = order[j]
                    order[j] = held
                for i in range((n + batch - 1) // batch):
                    start = i * batch
                    losses[epoch] += self.learn(
                        all_texts, &label_view[0], &order[start], min(batch, n - start), &scratch[0], rate)
                losses[epoch] /= n
        return np.asarray(losses)

    def predict(self, texts):
        """The probability of each class for each text."""
        cdef Py_ssize_t n = len(texts)
        words, starts = self.encode(texts)
        cdef const int32_t[::1] word_view = words
        cdef const Py_ssize_t[::1] start_view = starts
        cdef Py_ssize_t[::1] order = np.arange(n)
        cdef float[:, ::1] z = np.empty((n + 1, self.hidden), np.float32), h = np.empty_like(z)
        cdef float[:, ::1] logits = np.empty((n + 1, self.classes), np.float32), result = np.empty_like(logits)
        cdef Texts all_texts
        all_texts.words, all_texts.starts = &word_view[0], &start_view[0]
        if n:
            with nogil:
                self.forward(all_texts, &order[0], n, &z[0, 0], &h[0, 0], &logits[0, 0])
                ex_softmax_f32(&logits[0, 0], &result[0, 0], n, self.classes)
        return np.asarray(result)[:n]

    cdef tuple encode(self, object texts):
        """The hashed words of all texts, and where each text begins."""
        cdef list encoded = [text.encode() for text in texts]
        cdef int32_t[::1] words = np.empty(sum(len(data) for data in encoded) + 1, np.int32)
        cdef Py_ssize_t[::1] starts = np.zeros(len(encoded) + 1, np.intp)
        cdef Py_ssize_t i, count = 0
        cdef const unsigned char* letters
        for i, data in enumerate(encoded):
            letters = data
            count += hash_words(letters, len(data), self.buckets, &words[count])
            starts[i + 1] = count
        return np.asarray(words)[:count + 1], np.asarray(starts)
