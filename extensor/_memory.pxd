cdef object new_array(int ndim, Py_ssize_t* shape, int typenum)
