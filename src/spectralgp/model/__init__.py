"""The model: signals, spectra, kernels, likelihoods, processes in time and the fields they make together."""
