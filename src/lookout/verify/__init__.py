"""Any deployment held against the contract, clause by clause, by what it answers."""
