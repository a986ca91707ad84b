"""What makes packages of netbench, and tries them."""
