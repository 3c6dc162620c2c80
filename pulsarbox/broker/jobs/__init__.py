"""Jobs: long work on stored messages that an operator asks for, such as putting dead letters back."""
