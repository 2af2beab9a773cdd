"""One independent oracle for each rule: slow, readable, written from the contract, sharing only values with Lookout."""
