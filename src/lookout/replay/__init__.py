"""A recorded log run through the rules, and two histories compared."""
