"""Whether the rows keep the promises that recovery rests on, and how much room they take."""
