"""What a browser on this machine is shown: pages on the loopback interface, and nobody else's."""
