"""places: for tests, where a rank's tensors are made"""
import torch


def place_of(rank, device):
	"""the host, or this rank's GPU; ranks share GPUs where these are fewer"""
	if device == "cpu":
		return torch.device("cpu")
	at = torch.device("cuda", rank % torch.cuda.device_count())
	torch.cuda.set_device(at)
	return at


def where():
	return torch.empty(0).device
