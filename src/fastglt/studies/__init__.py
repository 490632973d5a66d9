"""Many runs that answer a question: methods side by side, or how sparse a method can go."""
