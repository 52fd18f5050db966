"""From text to translation: requests, guard, second tries, joining."""
